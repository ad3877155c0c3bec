package plugin

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/grafana/grafana-plugin-sdk-go/backend/gtime"
)

// problems collects what is wrong with the settings, so that one save tells all of it.
type problems struct{ errs []error }

func (p *problems) add(format string, args ...any) {
	p.errs = append(p.errs, fmt.Errorf(format, args...))
}

func (p *problems) err() error { return errors.Join(p.errs...) }

// fields reads one JSON object of the settings. What is absent or null has its fallback; what is wrong is noted under
// its full path, and reading goes on with the fallback.
type fields struct {
	path     string
	values   map[string]any
	problems *problems
}

func (f fields) at(key string) string {
	if f.path == "" {
		return key
	}
	return f.path + "." + key
}

func (f fields) has(key string) bool { return f.values[key] != nil }

// refuse notes what was found at the key and what is wanted there.
func (f fields) refuse(key, want string) {
	f.problems.add("%s: found %s, want %s", f.at(key), found(f.values[key]), want)
}

// text is trimmed; an empty one counts as absent, for that is how Grafana's editors clear a field.
func (f fields) text(key, fallback string) string {
	if !f.has(key) {
		return fallback
	}
	value, ok := f.values[key].(string)
	if !ok {
		f.refuse(key, "a text")
		return fallback
	}
	if value = strings.TrimSpace(value); value == "" {
		return fallback
	}
	return value
}

// textLike is a text that valid accepts.
func (f fields) textLike(key, fallback string, valid func(string) bool, want string) string {
	value := f.text(key, fallback)
	if value != fallback && !valid(value) {
		f.refuse(key, want)
		return fallback
	}
	return value
}

// choice is one of a list of texts.
func (f fields) choice(key, fallback string, allowed ...string) string {
	return f.textLike(key, fallback, func(v string) bool { return slices.Contains(allowed, v) }, oneOf(allowed))
}

// choiceSoFar is a choice of which some are valid but can't be used yet.
func (f fields) choiceSoFar(key, fallback string, available []string, later ...string) string {
	if value := f.text(key, fallback); slices.Contains(later, value) {
		f.problems.add("%s %q is not available in this version; use %s", f.at(key), value, oneOf(available))
		return fallback
	}
	return f.choice(key, fallback, available...)
}

func (f fields) flag(key string) bool {
	if !f.has(key) {
		return false
	}
	value, ok := f.values[key].(bool)
	if !ok {
		f.refuse(key, "true or false")
	}
	return value
}

// number is one that valid accepts.
func (f fields) number(key string, fallback float64, valid func(float64) bool, want string) float64 {
	if !f.has(key) {
		return fallback
	}
	value, ok := f.values[key].(float64)
	if !ok || !valid(value) {
		f.refuse(key, want)
		return fallback
	}
	return value
}

func (f fields) integer(key string, fallback, least, most int64) int64 {
	whole := func(v float64) bool {
		return v == math.Trunc(v) && v >= float64(least) && v <= float64(most)
	}
	return int64(f.number(key, float64(fallback), whole, fmt.Sprintf("a whole number from %d to %d", least, most)))
}

// duration is positive, written as Grafana does: "30s", "1m", "1d".
func (f fields) duration(key string, fallback time.Duration) time.Duration {
	text := f.text(key, "")
	if text == "" {
		return fallback
	}
	value, err := gtime.ParseDuration(text)
	if err != nil || value <= 0 {
		f.refuse(key, `a duration above zero, such as "30s" or "1m"`)
		return fallback
	}
	return value
}

// object reads a nested object, which is empty if absent.
func (f fields) object(key string) fields {
	values, ok := f.values[key].(map[string]any)
	if !ok && f.has(key) {
		f.refuse(key, "an object")
	}
	return fields{path: f.at(key), values: values, problems: f.problems}
}

// objects reads a list of objects.
func (f fields) objects(key string) []fields {
	list, ok := f.values[key].([]any)
	if !ok && f.has(key) {
		f.refuse(key, "a list of objects")
	}
	items := make([]fields, 0, len(list))
	for i, item := range list {
		path := fmt.Sprintf("%s[%d]", f.at(key), i)
		values, ok := item.(map[string]any)
		if !ok {
			f.problems.add("%s: found %s, want an object", path, found(item))
			continue
		}
		items = append(items, fields{path: path, values: values, problems: f.problems})
	}
	return items
}

// found shows a value as its writer knows it: as JSON, of a bounded length.
func found(value any) string {
	const longest = 80
	if value == nil {
		return "nothing"
	}
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprintf("a %T", value)
	}
	if runes := []rune(string(text)); len(runes) > longest {
		return string(runes[:longest]) + "..."
	}
	return string(text)
}

func oneOf(allowed []string) string {
	quoted := make([]string, len(allowed))
	for i, a := range allowed {
		quoted[i] = fmt.Sprintf("%q", a)
	}
	return strings.Join(quoted, " or ")
}
