// Command mutants plants deliberate mistakes in azconc's protocols, one at a time, and runs the test that must notice.
//
//	go run ./cmd/internal/mutants [name…]
//
// A mistake is planted by a build overlay: no file of the repository is changed. A mutant that builds and whose test
// passes has survived, and the command fails. So it does if the text that a mutant replaces is not there exactly once.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// mutant is one mistake.
type mutant struct {
	name     string // what the code does wrong
	file     string
	old, new string // the text in the file, and the mistake in its place
	pkg, run string // the test that notices: a package, and a pattern of test names
	hangs    bool   // the mistake makes the test wait for ever
}

func main() {
	flag.Usage = func() { fmt.Fprintln(os.Stderr, "usage: go run ./cmd/internal/mutants [name…]") }
	flag.Parse()
	dir, err := os.MkdirTemp("", "azconc-mutants-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
	code := run(dir, flag.Args())
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// atOnce is how many mutants are tried at a time: most of the time goes to the compiler and the linker, on one core each.
const atOnce = 2

func run(dir string, names []string) int {
	var mu sync.Mutex // guards survivors and the output
	var all sync.WaitGroup
	survivors, ran, seats := 0, 0, make(chan struct{}, atOnce)
	for i, m := range mutants {
		if len(names) > 0 && !slices.Contains(names, m.name) {
			continue
		}
		ran++
		seats <- struct{}{}
		all.Go(func() {
			defer func() { <-seats }()
			began := time.Now()
			convicted, err := m.try(filepath.Join(dir, strconv.Itoa(i)))
			mu.Lock()
			defer mu.Unlock()
			verdict := "convicted by " + convicted
			if err != nil {
				verdict = "NOT CONVICTED: " + err.Error()
				survivors++
			}
			fmt.Printf("%-60s %s (%.1f s)\n", m.name, verdict, time.Since(began).Seconds())
		})
	}
	all.Wait()
	fmt.Printf("%d mutants, %d not convicted\n", ran, survivors)
	if survivors > 0 || ran == 0 {
		return 1
	}
	return 0
}

// try plants the mutant, with its files in dir, runs its test and returns the name of the test that failed.
func (m mutant) try(dir string) (string, error) {
	source, err := os.ReadFile(m.file)
	if err != nil {
		return "", err
	}
	if n := strings.Count(string(source), m.old); n != 1 {
		return "", fmt.Errorf("the text to replace is %d times in %s, want once", n, m.file)
	}
	path, err := filepath.Abs(m.file)
	if err != nil {
		return "", err
	}
	planted, overlay := filepath.Join(dir, "mutant.go"), filepath.Join(dir, "overlay.json")
	list, err := json.Marshal(map[string]map[string]string{"Replace": {path: planted}})
	if err != nil {
		return "", err
	}
	mutated := strings.Replace(string(source), m.old, m.new, 1)
	if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(planted, []byte(mutated), 0o600), os.WriteFile(overlay, list, 0o600)); err != nil {
		return "", err
	}
	return m.test(overlay)
}

var (
	failed   = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)
	explored = regexp.MustCompile(`convicted after (\d+) schedules`) // package explore's own tests say so
)

func (m mutant) test(overlay string) (string, error) {
	var out bytes.Buffer
	cmd := exec.Command("go", "test", "-overlay", overlay, "-vet", "off", "-count", "1", "-timeout", "3m", "-run", m.run, m.pkg)
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	names := failed.FindAllStringSubmatch(out.String(), -1)
	switch {
	case err == nil:
		return "", fmt.Errorf("%s passes", m.run)
	case strings.Contains(out.String(), "panic: test timed out") && !m.hangs:
		return "", fmt.Errorf("%s does not end, which shows nothing", m.run)
	case len(names) > 0:
		by := names[len(names)-1][1]
		if n := explored.FindStringSubmatch(out.String()); n != nil {
			by += " after " + n[1] + " schedules"
		}
		return by, nil
	case strings.Contains(out.String(), "panic: test timed out"):
		return m.run + " (it did not end)", nil
	default:
		return "", fmt.Errorf("it does not build, or the test does not run: %s", strings.TrimSpace(out.String()))
	}
}
