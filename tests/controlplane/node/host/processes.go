package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
)

// processes are those of the nodes: containerd, kubelet and kube-proxy. Containers are not among
// them.
type processes struct {
	settings settings
	lock     sync.Mutex
	numbers  map[string]int
	// How each is started, for a new start after a kill.
	words map[string][]string
}

func newProcesses(s settings) *processes {
	return &processes{settings: s, numbers: map[string]int{}, words: map[string][]string{}}
}

// start starts a program with a log of its own.
func (p *processes) start(name, program string, arguments ...string) error {
	p.lock.Lock()
	defer p.lock.Unlock()
	return p.launch(name, append([]string{program}, arguments...))
}

func (p *processes) launch(name string, words []string) error {
	log, err := os.OpenFile(p.log(name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	packages := p.settings.Packages
	path := strings.Join([]string{
		p.settings.Programs,
		filepath.Join(packages, "usr/bin"),
		filepath.Join(packages, "usr/sbin"),
		os.Getenv("PATH"),
	}, ":")
	program, err := find(path, words[0])
	if err != nil {
		return err
	}
	libraries, err := filepath.Glob(filepath.Join(packages, "usr/lib/*-linux-gnu"))
	if err != nil {
		return err
	}
	nothing, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer nothing.Close()
	process, err := os.StartProcess(program, words, &os.ProcAttr{
		Dir:   "/",
		Files: []*os.File{nothing, log, log},
		Env: []string{
			"PATH=" + path,
			"HOME=/run",
			// Of nft alone.
			"LD_LIBRARY_PATH=" + strings.Join(libraries, ":"),
		},
	})
	if err != nil {
		return err
	}
	p.numbers[name], p.words[name] = process.Pid, words
	return nil
}

func find(path, program string) (string, error) {
	for _, folder := range filepath.SplitList(path) {
		file := filepath.Join(folder, program)
		if _, err := os.Stat(file); err == nil {
			return file, nil
		}
	}
	return "", fmt.Errorf("there is no %s", program)
}

func (p *processes) log(name string) string { return p.settings.file("log/" + name + ".log") }

// signal sends a signal to a process. One that is killed is started again.
func (p *processes) signal(name string, signal syscall.Signal) error {
	p.lock.Lock()
	defer p.lock.Unlock()
	number, exists := p.numbers[name]
	if !exists {
		return fmt.Errorf("no process is called %s", name)
	}
	if signal == syscall.SIGKILL {
		// The end of a process that has no name here is nothing to report.
		delete(p.numbers, name)
	}
	if err := syscall.Kill(number, signal); err != nil {
		return err
	}
	if signal == syscall.SIGKILL {
		return p.launch(name, p.words[name])
	}
	return nil
}

// reap takes every process that ends, and fails with the first that must not.
func (p *processes) reap() error {
	for {
		var status syscall.WaitStatus
		number, err := syscall.Wait4(-1, &status, 0, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil {
			return fmt.Errorf("wait: %w", err)
		}
		p.lock.Lock()
		for name, its := range p.numbers {
			if its == number {
				text, _ := os.ReadFile(p.log(name))
				lines := strings.Split(strings.TrimSpace(string(text)), "\n")
				last := strings.Join(lines[max(0, len(lines)-5):], "\nerror: ")
				return fmt.Errorf("%s ended by itself (%d):\nerror: %s", name, status.ExitStatus(), last)
			}
		}
		p.lock.Unlock()
	}
}
