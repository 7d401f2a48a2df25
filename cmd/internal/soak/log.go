package main

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/azconc/azconc/optimistic/appends"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/azconc/azconc/optimistic/blobs"
)

const logLife = 20 * time.Second

// workLogs appends records to append blobs, a new one every so often.
func workLogs(ctx context.Context, w *worker) {
	box := w.site.container("logs")
	i := 0
	w.repeat(ctx, "log", 1, 400*time.Millisecond, func(l *lane) {
		text := fmt.Sprintf("%s %s %d", l.name, w.Process, i)
		of := fmt.Sprintf("log-%d", now()/int64(logLife))
		i++
		n := l.journal.begin(note{Kind: "record", Lane: l.name, Of: of, Text: text})
		_, err := appends.AppendRecord(ctx, box.NewAppendBlobClient(of), []byte(text), &appends.AppendOptions{Create: true})
		l.done(ctx, n, err)
	})
}

func judgeLogs(ctx context.Context, s *site, j *judgement) error {
	found := map[string]int{}
	box := s.container("logs")
	for pages := box.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{}); pages.More(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, b := range page.Segment.BlobItems {
			var whole bytes.Buffer
			if _, err := blobs.Download(ctx, box.NewBlobClient(*b.Name), &whole, nil); err != nil {
				return err
			}
			for record, err := range appends.Records(&whole) {
				if err != nil {
					return fmt.Errorf("%s: %w", *b.Name, err)
				}
				found[*b.Name+" "+string(record.Data)]++
			}
		}
	}
	once := j.say("records appended once")
	for _, n := range j.records.of("record") {
		once.judged++
		count := found[n.Of+" "+n.Text]
		switch {
		case n.Out == ok && count == 0:
			once.wrong("lost: record %q in %s", n.Text, n.Of)
		case count > 1, count > 0 && (n.Out == refused || n.Out == failed):
			once.wrong("record %q is %d times in %s after %q", n.Text, count, n.Of, n.Out)
		}
		delete(found, n.Of+" "+n.Text)
	}
	for text := range found {
		once.wrong("nobody appended %q", text)
	}
	return nil
}
