package appends_test

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/azconc/azconc/optimistic/appends"
	"github.com/azconc/azconc/pkg/aztest"
)

// lines writes each line that it is given as a record of a log.
type lines struct{ *appends.Log }

func (l lines) Write(line []byte) (int, error) {
	if _, err := l.Append(context.Background(), line[:len(line)-1]); err != nil {
		return 0, err
	}
	return len(line), nil
}

// Many processes may log into one Log. Here its blobs are small, so that it goes on in another one.
func ExampleLog() {
	ctx := context.Background()
	s := aztest.New(nil)
	s.BlockBlob("logs", "any") // makes the container
	log, err := appends.NewLog(s.Container("logs"), "app", &appends.LogOptions{MaxSize: 200})
	if err != nil {
		fmt.Println(err)
		return
	}
	logger := slog.New(slog.NewJSONHandler(lines{log}, &slog.HandlerOptions{ReplaceAttr: withoutTime}))
	for i := range 5 {
		logger.Info("started", "job", i)
	}

	var next appends.Position // keep it, to go on from there
	for r, err := range log.Records(ctx, appends.Position{}, nil) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(r.Position.Blob, string(r.Data))
		next = r.Next
	}
	logger.Info("done")
	for r := range log.Records(ctx, next, nil) {
		fmt.Println(r.Position.Blob, string(r.Data))
	}
	// Output:
	// 1 {"level":"INFO","msg":"started","job":0}
	// 1 {"level":"INFO","msg":"started","job":1}
	// 2 {"level":"INFO","msg":"started","job":2}
	// 2 {"level":"INFO","msg":"started","job":3}
	// 3 {"level":"INFO","msg":"started","job":4}
	// 3 {"level":"INFO","msg":"done"}
}

func withoutTime(_ []string, a slog.Attr) slog.Attr {
	if a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}
