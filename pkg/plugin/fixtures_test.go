package plugin_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/grafana/grafana-plugin-sdk-go/backend"

	"github.com/gpucost/gpucost-amp-datasource/pkg/plugin"
)

// TestTheEditorAndTheBackendAgreeOnSettings reads the fixtures that the frontend's tests read as well.
func TestTheEditorAndTheBackendAgreeOnSettings(t *testing.T) {
	files, err := filepath.Glob("../../tests/fixtures/settings/*.json")
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
				URL            string
				JSONData       json.RawMessage
				SecureJSONData map[string]string
				Refused        []string
			}
			if err := json.Unmarshal(raw, &c); err != nil {
				t.Fatal(err)
			}
			var lines []string
			if _, err := plugin.ParseSettings(backend.DataSourceInstanceSettings{
				URL: c.URL, JSONData: c.JSONData, DecryptedSecureJSONData: c.SecureJSONData,
			}); err != nil {
				lines = strings.Split(err.Error(), "\n")
			}
			for _, path := range c.Refused {
				if !slices.ContainsFunc(lines, func(l string) bool {
					return strings.HasPrefix(l, path+":") || strings.HasPrefix(l, path+" ")
				}) {
					t.Errorf("%s is not refused: %q", path, lines)
				}
			}
			if len(lines) != len(c.Refused) {
				t.Errorf("got %q, want %v", lines, c.Refused)
			}
		})
	}
}
