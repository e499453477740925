// Command real-node runs kubelets with containers in private namespaces, beside a control plane on
// the machine's own loopback.
//
//	real-node run SETTINGS    makes the control groups and the namespaces, and forwards between the
//	                          two sides
//	real-node inside SETTINGS is the first process of the namespaces; only `run` starts it
//	real-node end DIRECTORY   waits until the processes of a killed `run` are gone, and removes the
//	                          control groups that have no owner
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// settings say which nodes to run; the crate writes them as JSON.
type settings struct {
	// The cluster's directory: pki/, run/ and log/.
	Directory string `json:"directory"`
	// Where kubelet, kube-proxy and app are.
	Programs string `json:"programs"`
	// Where the packages of containerd, runc, the network plug-ins and nft are unpacked.
	Packages string `json:"packages"`
	// The API server's port on loopback, outside and inside.
	Port int `json:"port"`
	// The number of nodes.
	Nodes int `json:"nodes"`
	// The control group of all nodes, once it is made.
	Group string `json:"group"`
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "Usage: real-node run SETTINGS | inside SETTINGS | end DIRECTORY")
		os.Exit(2)
	}
	var err error
	switch os.Args[1] {
	case "run":
		err = run(read(os.Args[2]))
	case "inside":
		err = inside(read(os.Args[2]))
	case "end":
		err = end(os.Args[2])
	default:
		err = fmt.Errorf("there is no command %s", os.Args[1])
	}
	check(err)
}

func read(path string) settings {
	var found settings
	text, err := os.ReadFile(path)
	check(err)
	check(json.Unmarshal(text, &found))
	return found
}

// check ends the process over an error; the crate shows the last lines of the log.
func check(err error) {
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
}

func (s settings) file(name string) string { return filepath.Join(s.Directory, name) }

// outward is the socket outside, which leads to the API server.
func (s settings) outward() string { return s.file("run/outward.sock") }

// exposedSocket is the socket outside, which leads to that server.
func (s settings) exposedSocket() string { return s.file("run/exposed.sock") }

// inward is the socket inside, which leads to nodes, pods and services.
func (s settings) inward() string { return s.file("run/inward.sock") }

// exposed has the port, on the machine's own loopback, of the server that pods reach by exposedPort.
func (s settings) exposed() string { return s.file("run/exposed.port") }

// ownImages has a folder for each image that is not the test image.
func (s settings) ownImages() string { return s.file("images") }

// first has the number that the machine gives the first process of the namespaces.
func first(directory string) string { return filepath.Join(directory, "run/real-node.first") }
