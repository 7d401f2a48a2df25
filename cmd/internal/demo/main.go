// Command demo plays the scenes of azconc demo on a service in memory, without the rest of azconc: scripts/demo builds it in
// seconds. The table comes first; -v adds what was sent and what came back.
package main

import (
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
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), "usage: demo [-v] [scene…]\n\nThe scenes:\n"+scene.List()+"\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	service := aztest.New(nil)
	connection := aztest.ConnectionString(service.BlobURL()) + "QueueEndpoint=" + service.QueueURL() + ";TableEndpoint=" + service.TableURL() + ";FileEndpoint=" + service.FileURL()
	results, err := scene.PlayAll(ctx, scene.OnConnection(connection, service.ClientOptions), flag.Args()...)
	stop()
	scene.Text(os.Stdout, results)
	if *verbose {
		scene.Trace(os.Stdout, results)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}
