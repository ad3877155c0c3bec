package query_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gpucost/gpucost-amp-datasource/pkg/query"
)

// TestTheEditorAndTheBackendAgreeOnQueries reads the fixtures that the frontend's tests read as well.
func TestTheEditorAndTheBackendAgreeOnQueries(t *testing.T) {
	files, err := filepath.Glob("../../tests/fixtures/queries/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal("no fixtures", err)
	}
	for _, path := range files {
		t.Run(filepath.Base(path), func(t *testing.T) {
			raw, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			var c struct {
				Query, Sent json.RawMessage
				Refused     *struct{ Field, Problem string }
			}
			if err := json.Unmarshal(raw, &c); err != nil {
				t.Fatal(err)
			}
			if c.Sent == nil {
				c.Sent = c.Query
			}
			_, err = query.Parse(c.Sent, query.Window{})
			var refusal *query.Error
			switch {
			case c.Refused == nil && err != nil:
				t.Errorf("refused: %v", err)
			case c.Refused == nil:
			case !errors.As(err, &refusal) || refusal.Field != c.Refused.Field,
				!strings.Contains(strings.ToLower(err.Error()), strings.ToLower(c.Refused.Problem)):
				t.Errorf("got %v, want %+v", err, *c.Refused)
			}
		})
	}
}
