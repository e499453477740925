// Command app is the only file of the test images: a web server that behaves as its environment
// says, the pause container, and a few small tools for probes, hooks and jobs.
package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

const usage = `Usage: app serve | pause | sleep DURATION | exit CODE | fill MEBIBYTES | get URL

The server's environment:
  PORT           the port, 8080 unless set
  VERSION        shown by every answer; an image sets it to its tag
  CONFIG         shown by every answer
  READY_AFTER    a duration until /ready answers 200, or "never"
  UNREADY_AFTER  a duration until /ready answers 503 again
  SICK_AFTER     a duration until /live answers 500
  CRASH_AFTER    a duration until the process ends with code 1
  IGNORE_TERM    "1" ignores SIGTERM
`

func main() {
	arguments := os.Args[1:]
	if len(arguments) == 0 {
		arguments = []string{"serve"}
	}
	argument := ""
	if len(arguments) > 1 {
		argument = arguments[1]
	}
	switch arguments[0] {
	case "serve":
		serve()
	case "pause":
		pause()
	case "sleep":
		time.Sleep(duration(argument))
	case "exit":
		code, err := strconv.Atoi(argument)
		check(err)
		os.Exit(code)
	case "fill":
		fill(argument)
	case "get":
		get(argument)
	default:
		fmt.Fprint(os.Stderr, usage)
		os.Exit(2)
	}
}

// pause holds the namespaces of a pod, and reaps what is left to it.
func pause() {
	ends := make(chan os.Signal, 1)
	signal.Notify(ends, syscall.SIGTERM, syscall.SIGINT)
	orphans := make(chan os.Signal, 1)
	signal.Notify(orphans, syscall.SIGCHLD)
	for {
		select {
		case <-ends:
			return
		case <-orphans:
			for {
				pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
				if err != nil || pid <= 0 {
					break
				}
			}
		}
	}
}

// fill takes memory until it has so much, and then holds it.
func fill(mebibytes string) {
	count, err := strconv.Atoi(mebibytes)
	check(err)
	held := make([][]byte, 0, count)
	for range count {
		chunk := make([]byte, 1<<20)
		for at := range chunk {
			chunk[at] = byte(at)
		}
		held = append(held, chunk)
	}
	fmt.Println("holding", len(held), "MiB")
	select {}
}

// get prints an answer, and fails unless it is a success.
func get(url string) {
	client := http.Client{Timeout: 5 * time.Second}
	answer, err := client.Get(url)
	check(err)
	defer answer.Body.Close()
	_, err = io.Copy(os.Stdout, answer.Body)
	check(err)
	if answer.StatusCode >= 300 {
		os.Exit(1)
	}
}

func duration(text string) time.Duration {
	value, err := time.ParseDuration(text)
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "app:", err)
		os.Exit(1)
	}
}
