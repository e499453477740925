package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"
)

// serve answers until SIGTERM, and then ends as a well-made server does: it finishes what it has
// begun.
func serve() {
	var ready, sick atomic.Bool
	begin(&ready, &sick)
	terminated := make(chan os.Signal, 1)
	signal.Notify(terminated, syscall.SIGTERM, syscall.SIGINT)

	routes := http.NewServeMux()
	routes.HandleFunc("/", func(answer http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(answer, "version=%s config=%s pod=%s\n", os.Getenv("VERSION"), os.Getenv("CONFIG"),
			os.Getenv("HOSTNAME"))
	})
	routes.HandleFunc("/ready", state(ready.Load, http.StatusServiceUnavailable))
	routes.HandleFunc("/live", state(func() bool { return !sick.Load() }, http.StatusInternalServerError))
	server := http.Server{Addr: ":" + setting("PORT", "8080"), Handler: routes}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range terminated {
			fmt.Println("SIGTERM")
			if os.Getenv("IGNORE_TERM") == "1" {
				continue
			}
			ready.Store(false)
			check(server.Shutdown(context.Background()))
			return
		}
	}()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		check(err)
	}
	<-ended
}

// begin starts what changes by itself: readiness, sickness and the crash.
func begin(ready, sick *atomic.Bool) {
	after("READY_AFTER", "0s", func() { ready.Store(true) })
	after("UNREADY_AFTER", "never", func() { ready.Store(false) })
	after("SICK_AFTER", "never", func() { sick.Store(true) })
	after("CRASH_AFTER", "never", func() {
		fmt.Println("crash")
		os.Exit(1)
	})
}

func after(variable, standard string, act func()) {
	text := setting(variable, standard)
	switch text {
	case "never":
	case "0s":
		act()
	default:
		time.AfterFunc(duration(text), act)
	}
}

func setting(variable, standard string) string {
	if value := os.Getenv(variable); value != "" {
		return value
	}
	return standard
}

func state(isGood func() bool, otherwise int) http.HandlerFunc {
	return func(answer http.ResponseWriter, _ *http.Request) {
		if !isGood() {
			answer.WriteHeader(otherwise)
		}
	}
}
