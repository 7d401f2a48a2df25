// Command mutants plants deliberate mistakes in azconc's protocols, one at a time, and runs the test that must notice.
//
//	go run ./cmd/internal/mutants [name…]
//
// Mistakes are planted by a build overlay: no file of the repository is changed. Those within a function are planted together, and a
// variable of the environment selects one, so that each package is built once; see plant. A mutant that builds and whose test passes has
// survived, and the command fails. So it does if the text that a mutant replaces is not there exactly once.
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

func main() {
	flag.Usage = func() { fmt.Fprintln(os.Stderr, "usage: go run ./cmd/internal/mutants [name…]") }
	flag.Parse()
	dir, err := os.MkdirTemp("", "azconc-mutants-")
	survivors := 0
	if err == nil {
		survivors, err = run(dir, flag.Args())
		_ = os.RemoveAll(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
	}
	if err != nil || survivors > 0 {
		os.Exit(1)
	}
}

// atOnce is how many builds and tests run at a time.
const atOnce = 2

// session is one run of the program.
type session struct {
	dir     string // for files
	mutants []mutant
	seats   chan struct{} // one for each build or test at a time

	mu             sync.Mutex // guards what follows, and the output
	survivors, ran int
}

// run tries the mutants with these names, or all without one, and returns how many were not convicted.
func run(dir string, names []string) (survivors int, err error) {
	s := &session{dir: dir, seats: make(chan struct{}, atOnce)}
	if s.mutants, err = load(); err != nil {
		return 0, err
	}
	var numbers []int
	for n, m := range s.mutants {
		if len(names) > 0 && !slices.Contains(names, m.name) {
			continue
		}
		if _, _, _, err := m.find("."); err != nil {
			s.report(m, "", err, time.Now())
			continue
		}
		numbers = append(numbers, n)
	}
	sources, alone, err := plant(".", s.mutants, numbers)
	overlay := filepath.Join(dir, "overlay.json")
	if err == nil {
		err = writeOverlay(dir, overlay, sources)
	}
	if err != nil {
		return 0, err
	}
	byPackage := map[string][]int{}
	for _, n := range numbers {
		if !slices.Contains(alone, n) {
			byPackage[s.mutants[n].pkg] = append(byPackage[s.mutants[n].pkg], n)
		}
	}
	var all sync.WaitGroup
	for pkg, group := range byPackage {
		all.Go(func() { s.together(overlay, pkg, group) })
	}
	for _, n := range alone {
		all.Go(func() { s.alone(n) })
	}
	all.Wait()
	fmt.Printf("%d mutants, %d not convicted\n", s.ran, s.survivors)
	if s.ran == 0 {
		return 0, errors.New("there is no mutant of that name")
	}
	return s.survivors, nil
}

// report prints what became of a mutant.
func (s *session) report(m mutant, convicted string, err error, began time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ran++
	verdict := "convicted by " + convicted
	if err != nil {
		verdict = "NOT CONVICTED: " + err.Error()
		s.survivors++
	}
	fmt.Printf("%-60s %s (%.1f s)\n", m.name, verdict, time.Since(began).Seconds())
}

// together builds the tests of a package with all mutants of the group in it, and runs the test of each with that one planted.
func (s *session) together(overlay, pkg string, group []int) {
	binary := filepath.Join(s.dir, strconv.Itoa(group[0])+".test")
	s.seats <- struct{}{}
	out, err := exec.Command("go", "test", "-c", "-overlay", overlay, "-vet", "off", "-ldflags", "-s -w", "-o", binary, pkg).CombinedOutput()
	<-s.seats
	if err != nil {
		fmt.Fprintf(os.Stderr, "mutants: %s does not build with all of its mutants, so each is built alone: %s\n", pkg, bytes.TrimSpace(out))
	}
	var all sync.WaitGroup
	for _, n := range group {
		if err != nil {
			all.Go(func() { s.alone(n) })
			continue
		}
		all.Go(func() {
			s.seats <- struct{}{}
			defer func() { <-s.seats }()
			m, began := s.mutants[n], time.Now()
			cmd := exec.Command(binary, "-test.paniconexit0", "-test.failfast", "-test.timeout", "3m", "-test.run", m.run)
			cmd.Dir, cmd.Env = pkg, append(os.Environ(), selects+"="+strconv.Itoa(n))
			convicted, err := m.convict(cmd)
			s.report(m, convicted, err, began)
		})
	}
	all.Wait()
}

// alone builds and tests one mutant.
func (s *session) alone(n int) {
	s.seats <- struct{}{}
	defer func() { <-s.seats }()
	began := time.Now()
	convicted, err := s.mutants[n].try(filepath.Join(s.dir, strconv.Itoa(n)))
	s.report(s.mutants[n], convicted, err, began)
}

// writeOverlay writes the sources, by the paths that they replace, into dir, and the overlay.
func writeOverlay(dir, overlay string, sources map[string]string) error {
	replace := map[string]string{}
	for path, source := range sources {
		full, err := filepath.Abs(path)
		if err != nil {
			return err
		}
		replace[full] = filepath.Join(dir, strconv.Itoa(len(replace))+".go")
		if err := os.WriteFile(replace[full], []byte(source), 0o600); err != nil {
			return err
		}
	}
	list, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		return err
	}
	return os.WriteFile(overlay, list, 0o600)
}

// try plants the mutant alone, with its files in dir, runs its test and returns the name of the test that failed.
func (m mutant) try(dir string) (string, error) {
	source, from, to, err := m.find(".")
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	if err := errors.Join(os.Mkdir(dir, 0o700), writeOverlay(dir, overlay, map[string]string{m.file: source[:from] + m.replacement() + source[to:]})); err != nil {
		return "", err
	}
	return m.convict(exec.Command("go", "test", "-overlay", overlay, "-vet", "off", "-count", "1", "-failfast", "-timeout", "3m", "-run", m.run, m.pkg))
}

var (
	failed   = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)
	explored = regexp.MustCompile(`convicted after (\d+) schedules`) // package explore's own tests say so
)

// convict runs the test of a planted mutant, and returns the name of the test that failed.
func (m mutant) convict(cmd *exec.Cmd) (string, error) {
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	names := failed.FindAllStringSubmatch(out.String(), -1)
	switch {
	case err == nil:
		return "", fmt.Errorf("%s passes", m.run)
	case strings.Contains(out.String(), "panic: test timed out"):
		return "", fmt.Errorf("%s does not end, which shows nothing", m.run)
	case len(names) > 0:
		by := names[len(names)-1][1]
		if n := explored.FindStringSubmatch(out.String()); n != nil {
			by += " after " + n[1] + " schedules"
		}
		return by, nil
	}
	return "", fmt.Errorf("it does not build, or the test does not run: %s", strings.TrimSpace(out.String()))
}
