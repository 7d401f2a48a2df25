// Command demo plays the scenes of azconc demo on a service in memory, without the rest of azconc: scripts/demo builds it in
// seconds. The table comes first; -v adds what was sent and what came back.
package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"

	"github.com/azconc/azconc/cmd/internal/demo/scene"
	"github.com/azconc/azconc/pkg/aztest"
)

func main() {
	verbose := flag.Bool("v", false, "print what was sent and what came back")
	picture := flag.String("picture", "", "write the table as a picture to this `file`, an SVG")
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), "usage: demo [-v] [-picture file] [scene…]\n\nThe scenes:\n")
		scene.List(flag.CommandLine.Output())
		fmt.Fprintln(flag.CommandLine.Output())
		flag.PrintDefaults()
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := play(ctx, *verbose, *picture, flag.Args())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// play plays scenes, and draws their table into a file if picture names one.
func play(ctx context.Context, verbose bool, picture string, names []string) error {
	service := aztest.New(nil)
	connection := aztest.ConnectionString(service.BlobURL()) + "QueueEndpoint=" + service.QueueURL() + ";TableEndpoint=" + service.TableURL() + ";FileEndpoint=" + service.FileURL()
	results, err := scene.PlayAll(ctx, scene.OnConnection(connection, service.ClientOptions), names...)
	scene.Text(os.Stdout, results)
	if verbose {
		scene.Trace(os.Stdout, results)
	}
	if err != nil || picture == "" {
		return err
	}
	var drawn bytes.Buffer
	if err := scene.Picture(&drawn, results); err != nil {
		return err
	}
	return os.WriteFile(picture, drawn.Bytes(), 0o666)
}
