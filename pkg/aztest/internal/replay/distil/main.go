// Command distil makes the facts in ../testdata from recordings of real accounts' traffic:
//
//	go run ./pkg/aztest/internal/replay/distil -to pkg/aztest/internal/replay/testdata/SET DIRECTORY
//
// The directory holds blob.jsonl.gz, file.jsonl.gz, queue.jsonl.gz and table.jsonl.gz, whose lines the README in testdata
// describes.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/azconc/azconc/pkg/aztest/internal/replay"
)

func main() {
	to := flag.String("to", "pkg/aztest/internal/replay/testdata/first", "the directory to write to")
	flag.Parse()
	if flag.NArg() != 1 {
		fmt.Fprintln(os.Stderr, "distil: name the directory with the recordings")
		os.Exit(2)
	}
	for _, service := range replay.Services {
		if err := distil(filepath.Join(flag.Arg(0), service+".jsonl.gz"), filepath.Join(*to, service+".jsonl.gz"), service); err != nil {
			fmt.Fprintf(os.Stderr, "distil: %s: %v\n", service, err)
			os.Exit(1)
		}
	}
}

func distil(from, to, service string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	scenarios, err := replay.Distil(in, service)
	if err != nil {
		return err
	}
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	if err := replay.Write(out, scenarios); err != nil {
		_ = out.Close()
		return err
	}
	return out.Close()
}
