// Command demo plays the scenes of azconc demo on a service in memory, without the rest of azconc: scripts/demo builds it in
// seconds. The table comes first; -v adds what was sent and what came back.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/azconc/azconc/cmd/internal/demo/scene"
	"github.com/azconc/azconc/pkg/aztest"
)

func main() {
	verbose := flag.Bool("v", false, "print what was sent and what came back")
	timeline := flag.String("timeline", "", "write the timeline of the scenes to this `file`, a page of HTML")
	picture := flag.String("picture", "", "write the table as a picture to this `file`, an SVG")
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), "usage: demo [-v] [-timeline file] [-picture file] [scene…]\n\nThe scenes:\n")
		scene.List(flag.CommandLine.Output())
		fmt.Fprintln(flag.CommandLine.Output())
		flag.PrintDefaults()
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := play(ctx, *verbose, map[string]drawer{*timeline: scene.Timeline, *picture: scene.Picture}, flag.Args())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// drawer writes results as a page or a picture.
type drawer func(io.Writer, []scene.Result) error

// play plays scenes, and draws them into files. A file without a name is left out.
func play(ctx context.Context, verbose bool, files map[string]drawer, names []string) error {
	service := aztest.New(nil)
	results, failed := scene.PlayAll(ctx, scene.OnConnection(connection(service), service.ClientOptions), names...)
	scene.Text(os.Stdout, results)
	if verbose {
		scene.Trace(os.Stdout, results)
	}
	for name, draw := range files {
		var drawn bytes.Buffer
		if failed != nil || name == "" {
			continue
		}
		if err := draw(&drawn, results); err != nil {
			return err
		}
		if err := os.WriteFile(name, drawn.Bytes(), 0o666); err != nil {
			return err
		}
	}
	return failed
}

func connection(s *aztest.Service) string {
	return aztest.ConnectionString(s.BlobURL()) + "QueueEndpoint=" + s.QueueURL() + ";TableEndpoint=" + s.TableURL() + ";FileEndpoint=" + s.FileURL()
}
