package plugin_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/tools/txtar"
)

// scenario is one case of the executable specification, read from a txtar file. docs/specification.md tells the format.
type scenario struct {
	path     string
	settings map[string]any
	series   string
	query    json.RawMessage
	headers  map[string]string
	from, to time.Time
	step     time.Duration

	want          *sheet
	tolerance     float64
	notices       []string
	promQL        *string
	queryError    string
	settingsError string
}

// sheet is an answer as rows of cells by column. A nil cell is null.
type sheet struct {
	columns []string
	rows    []row
}

type row struct {
	keys   map[string]string   // text columns
	values map[string]*float64 // number columns
}

func readScenario(path string) (scenario, error) {
	archive, err := txtar.ParseFile(path)
	if err != nil {
		return scenario{}, err
	}
	s := scenario{path: path, settings: map[string]any{}, query: json.RawMessage("{}"), tolerance: 1e-9, step: time.Minute}
	for _, f := range archive.Files {
		if err := s.read(f.Name, string(f.Data)); err != nil {
			return scenario{}, fmt.Errorf("section %q: %w", f.Name, err)
		}
	}
	return s, nil
}

func (s *scenario) read(section, text string) (err error) {
	trimmed := strings.TrimSpace(text)
	switch section {
	case "settings.json":
		return json.Unmarshal([]byte(text), &s.settings)
	case "series":
		s.series = text
	case "query.json":
		s.query = json.RawMessage(trimmed)
	case "headers":
		s.headers = map[string]string{}
		for line := range strings.Lines(trimmed) {
			name, value, _ := strings.Cut(line, ":")
			s.headers[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
	case "range":
		return s.readRange(trimmed)
	case "want":
		s.want, err = readSheet(trimmed)
	case "tolerance":
		s.tolerance, err = strconv.ParseFloat(trimmed, 64)
	case "notices":
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line != "" {
				s.notices = append(s.notices, line)
			}
		}
	case "promql":
		s.promQL = &trimmed
	case "error":
		s.queryError = trimmed
	case "settings error":
		s.settingsError = trimmed
	default:
		return fmt.Errorf("is not one that a scenario has")
	}
	return err
}

var rangePattern = regexp.MustCompile(`^from\s+(\S+)\s+to\s+(\S+)(?:\s+step\s+(\S+))?$`)

func (s *scenario) readRange(text string) error {
	m := rangePattern.FindStringSubmatch(text)
	if m == nil {
		return fmt.Errorf("want: from <duration> to <duration> [step <duration>], got %q", text)
	}
	from, err := time.ParseDuration(m[1])
	if err != nil {
		return err
	}
	to, err := time.ParseDuration(m[2])
	if err != nil {
		return err
	}
	s.from, s.to = time.Unix(0, 0).UTC().Add(from), time.Unix(0, 0).UTC().Add(to)
	if m[3] != "" {
		s.step, err = time.ParseDuration(m[3])
	}
	return err
}

// cell is a word, or a text in quotes.
var cell = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|\S+`)

func readSheet(text string) (*sheet, error) {
	s := &sheet{}
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		cells, err := readCells(line)
		if err != nil {
			return nil, err
		}
		if s.columns == nil {
			s.columns = cells
			continue
		}
		if len(cells) != len(s.columns) {
			return nil, fmt.Errorf("row %q has %d cells for %d columns", strings.TrimSpace(line), len(cells), len(s.columns))
		}
		r := row{keys: map[string]string{}, values: map[string]*float64{}}
		for i, column := range s.columns {
			if err := r.set(column, cells[i]); err != nil {
				return nil, err
			}
		}
		s.rows = append(s.rows, r)
	}
	return s, nil
}

func readCells(line string) ([]string, error) {
	cells := cell.FindAllString(line, -1)
	for i, c := range cells {
		if strings.HasPrefix(c, `"`) {
			text, err := strconv.Unquote(c)
			if err != nil {
				return nil, fmt.Errorf("cell %s: %w", c, err)
			}
			cells[i] = text
		}
	}
	return cells, nil
}

// textColumns are the columns that hold names; all others hold numbers.
var textColumns = []string{"bu", "namespace", "cluster", "workload", "pod", "node", "instance_type", "gpu_model"}

func (r row) set(column, text string) error {
	if column == "time" {
		offset, err := time.ParseDuration(text)
		r.keys[column] = offset.String()
		return err
	}
	if slices.Contains(textColumns, column) {
		r.keys[column] = text
		return nil
	}
	if text == "null" {
		r.values[column] = nil
		return nil
	}
	v, err := strconv.ParseFloat(text, 64)
	r.values[column] = &v
	return err
}

// blank tells of a row of nothing but nulls. In a time series it says no more than its absence.
func (r row) blank() bool {
	for _, v := range r.values {
		if v != nil {
			return false
		}
	}
	return true
}

func (r row) name() string {
	var parts []string
	for _, column := range append([]string{"time"}, textColumns...) {
		if v, ok := r.keys[column]; ok {
			parts = append(parts, column+"="+v)
		}
	}
	return strings.Join(parts, " ")
}

// compare tells how an answer differs from what is wanted; rows and columns may come in any order.
func (s *sheet) compare(got *sheet, tolerance float64) []string {
	var problems []string
	wanted, had := slices.Sorted(slices.Values(s.columns)), slices.Sorted(slices.Values(got.columns))
	if !slices.Equal(wanted, had) {
		problems = append(problems, fmt.Sprintf("columns: want %v, got %v", wanted, had))
	}
	rows := map[string]row{}
	for _, r := range got.rows {
		if _, twice := rows[r.name()]; twice {
			problems = append(problems, "row "+r.name()+": twice in the answer")
		}
		rows[r.name()] = r
	}
	for _, want := range s.rows {
		have, ok := rows[want.name()]
		delete(rows, want.name())
		if !ok {
			problems = append(problems, "row "+want.name()+": missing")
			continue
		}
		for column, v := range want.values {
			if g := have.values[column]; !same(v, g, tolerance) {
				problems = append(problems, fmt.Sprintf("row %s: %s: want %s, got %s", want.name(), column, show(v), show(g)))
			}
		}
	}
	for name, r := range rows {
		problems = append(problems, fmt.Sprintf("row %s: not wanted: %s", name, showRow(r)))
	}
	slices.Sort(problems)
	return problems
}

func same(want, got *float64, tolerance float64) bool {
	if want == nil || got == nil {
		return want == got
	}
	if *want == 0 {
		return math.Abs(*got) <= 1e-12
	}
	return math.Abs(*got-*want) <= tolerance*math.Abs(*want)
}

func show(v *float64) string {
	if v == nil {
		return "null"
	}
	return strconv.FormatFloat(*v, 'g', -1, 64)
}

func showRow(r row) string {
	var parts []string
	for column, v := range r.values {
		parts = append(parts, column+"="+show(v))
	}
	slices.Sort(parts)
	return strings.Join(parts, " ")
}

// scenarioFiles are this package's own scenarios and those of the directories in GPUCOST_SCENARIOS.
func scenarioFiles(t *testing.T) []string {
	t.Helper()
	directories := []string{"testdata"}
	for _, d := range filepath.SplitList(os.Getenv("GPUCOST_SCENARIOS")) {
		if d != "" {
			directories = append(directories, d)
		}
	}
	var files []string
	for _, d := range directories {
		found, err := filepath.Glob(filepath.Join(d, "*.txtar"))
		if err != nil {
			t.Fatal(err)
		}
		if len(found) == 0 {
			t.Fatalf("no scenario in %s", d)
		}
		files = append(files, found...)
	}
	return files
}
