// Command envsubst puts variables into texts as Flux does in strict mode: it reads a list of cases
// from standard input and writes a list of outcomes to standard output, both as JSON.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/fluxcd/pkg/envsubst"
)

type expansionCase struct {
	Text      string            `json:"text"`
	Variables map[string]string `json:"variables"`
}

type expansionOutcome struct {
	Text  string `json:"text"`
	Error string `json:"error"`
}

func main() {
	var cases []expansionCase
	if err := json.NewDecoder(os.Stdin).Decode(&cases); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	outcomes := make([]expansionOutcome, 0, len(cases))
	for _, one := range cases {
		outcomes = append(outcomes, expand(one))
	}
	if err := json.NewEncoder(os.Stdout).Encode(outcomes); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// expand puts the variables into one text. Some expressions make the library panic.
func expand(one expansionCase) (outcome expansionOutcome) {
	defer func() {
		if cause := recover(); cause != nil {
			outcome = expansionOutcome{Error: fmt.Sprint("panic: ", cause)}
		}
	}()
	text, err := envsubst.Eval(one.Text, func(name string) (string, bool) {
		value, exists := one.Variables[name]
		return value, exists
	})
	if err != nil {
		return expansionOutcome{Error: err.Error()}
	}
	return expansionOutcome{Text: text}
}
