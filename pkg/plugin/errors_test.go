package plugin

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/grafana/grafana-plugin-sdk-go/backend"

	"github.com/gpucost/gpucost-amp-datasource/pkg/amp"
	"github.com/gpucost/gpucost-amp-datasource/pkg/query"
)

func TestErrorsGetTheStatusAndSourceOfWhoCanMendThem(t *testing.T) {
	for _, c := range []struct {
		name   string
		err    error
		status backend.Status
		source backend.ErrorSource
	}{
		{"a wrong query is the user's", &query.Error{Field: "metrics"}, 400, backend.ErrorSourceDownstream},
		{"wrong settings are the user's", settingsError{errors.New("url")}, 400, backend.ErrorSourceDownstream},
		{"PromQL that AMP doesn't take is ours", &amp.Error{Kind: amp.BadData, Status: 400}, 400, backend.ErrorSourcePlugin},
		{"an answer too large is not ours", &amp.Error{Kind: amp.ResponseTooLarge, Status: 413}, 413, backend.ErrorSourceDownstream},
		{"throttling told by AMP", fmt.Errorf("base: %w", &amp.Error{Kind: amp.Throttled, Status: 429}), 429, backend.ErrorSourceDownstream},
		{"throttling kept by the client", &amp.Error{Kind: amp.Throttled}, 429, backend.ErrorSourceDownstream},
		{"a server out of reach", &amp.Error{Kind: amp.Unreachable}, 502, backend.ErrorSourceDownstream},
		{"a deadline", context.DeadlineExceeded, backend.StatusTimeout, backend.ErrorSourceDownstream},
		{"a viewer who left", context.Canceled, 499, backend.ErrorSourceDownstream},
		{"anything else is ours", errors.New("bug"), 500, backend.ErrorSourcePlugin},
	} {
		t.Run(c.name, func(t *testing.T) {
			if r := failed(c.err, nil); r.Status != c.status || r.ErrorSource != c.source {
				t.Errorf("got %d from %s", r.Status, r.ErrorSource)
			}
		})
	}
}
