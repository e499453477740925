package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"
)

// accept serves each connection by itself.
func accept(listener net.Listener, serve func(net.Conn)) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			fmt.Println("error: accept:", err)
			os.Exit(1)
		}
		go serve(conn)
	}
}

// forward connects a connection with an address.
func forward(conn net.Conn, network, address string) {
	defer conn.Close()
	other, err := net.Dial(network, address)
	if err != nil {
		return
	}
	join(conn, conn, other)
}

// join copies both ways until both ends are reached.
func join(conn net.Conn, input io.Reader, other net.Conn) {
	defer other.Close()
	done := make(chan struct{})
	go func() {
		_, _ = io.Copy(other, input)
		closeWrite(other)
		close(done)
	}()
	_, _ = io.Copy(conn, other)
	closeWrite(conn)
	<-done
}

func closeWrite(conn net.Conn) {
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}

// proxy answers a CONNECT request with a way to the address, and `POST /signal/PROCESS/NAME` with a
// signal to one of the node's processes.
func proxy(conn net.Conn, processes *processes) {
	defer conn.Close()
	input := bufio.NewReader(conn)
	request, err := http.ReadRequest(input)
	if err != nil {
		return
	}
	if request.Method != http.MethodConnect {
		status := "204 No Content"
		if err := signal(request, processes); err != nil {
			status = "400 " + err.Error()
		}
		fmt.Fprintf(conn, "HTTP/1.1 %s\r\nContent-Length: 0\r\n\r\n", status)
		return
	}
	other, err := net.DialTimeout("tcp", request.Host, 5*time.Second)
	if err != nil {
		fmt.Fprintf(conn, "HTTP/1.1 502 %s\r\nContent-Length: 0\r\n\r\n", err)
		return
	}
	fmt.Fprint(conn, "HTTP/1.1 200 Connected\r\n\r\n")
	join(conn, input, other)
}

func signal(request *http.Request, processes *processes) error {
	words := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	signals := map[string]syscall.Signal{
		"STOP": syscall.SIGSTOP, "CONT": syscall.SIGCONT, "KILL": syscall.SIGKILL,
	}
	if len(words) != 3 || words[0] != "signal" || signals[words[2]] == 0 {
		return fmt.Errorf("no such order: %s", request.URL.Path)
	}
	return processes.signal(words[1], signals[words[2]])
}
