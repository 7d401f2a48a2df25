package telemetry

import (
	"context"
	"errors"
	"strings"

	"go.opentelemetry.io/otel/attribute"

	"github.com/azconc/azconc/pkg/azerr"
	"github.com/azconc/azconc/pkg/fence"
)

// failed returns the attribute error.type, or nothing for a success. Its values are few, whatever the error says.
func failed(err error) []attribute.KeyValue {
	if err == nil {
		return nil
	}
	return []attribute.KeyValue{attribute.String("error.type", typeOf(err))}
}

func typeOf(err error) string {
	for _, known := range []struct {
		err  error
		name string
	}{
		// An unknown outcome is the gravest of the things that an error can be at once.
		{azerr.ErrOutcomeUnknown, "outcome_unknown"},
		{fence.ErrFenced, "fenced"},
		{azerr.ErrExists, "exists"},
		{azerr.ErrNotFound, "not_found"},
		{azerr.ErrConflict, "conflict"},
		{context.Canceled, "canceled"},
		{context.DeadlineExceeded, "timeout"},
	} {
		if errors.Is(err, known.err) {
			return known.name
		}
	}
	out := azerr.Classify(err)
	switch {
	case out.Code != "":
		return out.Code
	case out.Kind != azerr.Other:
		return strings.ReplaceAll(out.Kind.String(), " ", "_")
	}
	return "_OTHER"
}
