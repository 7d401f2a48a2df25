// Command release builds everything that a release of azconc consists of: archives for six systems, packages for Debian and
// Red Hat, an image, manifests for Homebrew, Scoop and winget, software bills of materials and checksums.
//
//	scripts/release [-out dist] [-targets linux/amd64,…] v1.2.3
//
// It also prepares a tag for every module of the repository, as modules.go says, and pushes none.
//
// The same commit and the same Go make the same bits, whatever the directory, the umask and the time. The program is a module of its
// own, so that what it needs is not azconc's.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:])
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(64)
	case err != nil:
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// aVersion is a version as tags have it.
var aVersion = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.-]+)?$`)

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	source := flags.String("source", ".", "the clone to build, which must have nothing uncommitted")
	out := flags.String("out", "dist", "the `directory` for the release; it is emptied first")
	targets := flags.String("targets", "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64", "the `systems` to build for")
	tags := flags.Bool("tags", true, "make the tags of all modules")
	flags.Usage = func() {
		fmt.Fprintln(os.Stderr, "usage: scripts/release [flags] v<major>.<minor>.<patch>")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return flag.ErrHelp
	}
	if flags.NArg() != 1 || !aVersion.MatchString(flags.Arg(0)) {
		flags.Usage()
		return flag.ErrHelp
	}
	r := &release{version: flags.Arg(0), targets: strings.Split(*targets, ",")}
	var err error
	if r.source, err = filepath.Abs(*source); err != nil {
		return err
	}
	if r.out, err = filepath.Abs(*out); err != nil {
		return err
	}
	if err := r.describe(ctx); err != nil {
		return err
	}
	if err := r.build(ctx); err != nil || !*tags {
		return err
	}
	return r.tag(ctx)
}
