package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// The name of a control group is this and the number of its owner.
const groupPrefix = "rhumb-node-"

// run makes what a node needs of the machine, and starts its first process.
func run(s settings) error {
	// The child is killed when the thread that started it ends.
	runtime.LockOSThread()
	// A group whose last processes are just ending is left to whoever comes next.
	_ = sweep()
	s.Group = groupPrefix + strconv.Itoa(os.Getpid())
	if err := makeGroups(s); err != nil {
		return err
	}
	apiserver := "127.0.0.1:" + strconv.Itoa(s.Port)
	outward, err := net.Listen("unix", s.outward())
	if err != nil {
		return err
	}
	go accept(outward, func(conn net.Conn) { forward(conn, "tcp", apiserver) })
	exposed, err := net.Listen("unix", s.exposedSocket())
	if err != nil {
		return err
	}
	go accept(exposed, func(conn net.Conn) {
		// Nobody is there before a test says so.
		port, err := os.ReadFile(s.exposed())
		if err != nil {
			conn.Close()
			return
		}
		forward(conn, "tcp", "127.0.0.1:"+string(port))
	})

	path := s.file("run/real-node.inside.json")
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return err
	}
	// Its other end closes with this process, whatever ends it.
	life, _, err := os.Pipe()
	if err != nil {
		return err
	}
	command := exec.Command("/proc/self/exe", "inside", path)
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	command.ExtraFiles = []*os.File{life}
	command.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWNET | syscall.CLONE_NEWIPC,
		Pdeathsig:  syscall.SIGKILL,
	}
	if err := command.Start(); err != nil {
		return fmt.Errorf("make namespaces: %w", err)
	}
	number := strconv.Itoa(command.Process.Pid)
	if err := os.WriteFile(first(s.Directory), []byte(number), 0o600); err != nil {
		return err
	}
	return fmt.Errorf("the nodes ended: %v", command.Wait())
}

// hierarchies are the mounted trees of control groups.
func hierarchies() ([]string, error) {
	text, err := os.ReadFile("/proc/mounts")
	if err != nil {
		return nil, err
	}
	var found []string
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) > 2 && (fields[2] == "cgroup" || fields[2] == "cgroup2") {
			found = append(found, fields[1])
		}
	}
	return found, nil
}

func makeGroups(s settings) error {
	all, err := hierarchies()
	if err != nil {
		return err
	}
	for _, hierarchy := range all {
		for node := range s.Nodes {
			for _, folder := range []string{
				filepath.Join(hierarchy, s.Group),
				filepath.Join(hierarchy, s.Group, nodeName(node)),
			} {
				if err := os.MkdirAll(folder, 0o755); err != nil {
					return err
				}
				// A new group of these may use no processor at first.
				for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
					value, err := os.ReadFile(filepath.Join(filepath.Dir(folder), file))
					if err != nil {
						continue
					}
					if err := os.WriteFile(filepath.Join(folder, file), value, 0o644); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// sweep removes the control groups whose owners are gone.
func sweep() error {
	all, err := hierarchies()
	if err != nil {
		return err
	}
	for _, hierarchy := range all {
		groups, err := filepath.Glob(filepath.Join(hierarchy, groupPrefix+"*"))
		if err != nil {
			return err
		}
		for _, group := range groups {
			owner := strings.TrimPrefix(filepath.Base(group), groupPrefix)
			if runs(owner) {
				continue
			}
			if err := remove(group); err != nil {
				return err
			}
		}
	}
	return nil
}

// remove takes a control group away, its parts first. Somebody else may be at it too.
func remove(group string) error {
	entries, err := os.ReadDir(group)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.IsDir() {
			if err := remove(filepath.Join(group, entry.Name())); err != nil {
				return err
			}
		}
	}
	if err := syscall.Rmdir(group); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove %s: %w", group, err)
	}
	return nil
}

// end waits until the namespaces are gone, and cleans up after them.
func end(directory string) error {
	if number, err := os.ReadFile(first(directory)); err == nil {
		for runs(string(number)) {
			time.Sleep(5 * time.Millisecond)
		}
	}
	deadline := time.Now().Add(10 * time.Second)
	for {
		err := sweep()
		// The kernel takes a moment over the groups of processes that have just ended.
		if err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// runs tells whether a process has not ended. The first of its namespace ends after all others.
func runs(number string) bool {
	text, err := os.ReadFile("/proc/" + number + "/stat")
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	return !strings.HasPrefix(rest, "Z") && !strings.HasPrefix(rest, "X")
}
