package amptest

import (
	"context"
	"strings"
	"testing"
)

func TestAScriptOfSeveralBlocksIsStored(t *testing.T) {
	s := start(t, Options{}, `
# a comment
load 1m
  a{x="1"} 0+10x3 _ 7
	# another
  b -1x2 stale

load 1h
c 1 2
a{x="1"} _x2 9
`)
	client := prometheusClient(t, s.URL())
	for query, want := range map[string]string{
		`a[5h]`: "a{x=\"1\"} =>\n0 @[0]\n10 @[60]\n20 @[120]\n30 @[180]\n7 @[300]\n9 @[7200]",
		`b[5h]`: "b =>\n-1 @[0]\n-1 @[60]\n-1 @[120]",
		`c[5h]`: "c =>\n1 @[0]\n2 @[3600]",
	} {
		got, _, _, err := client.Query(context.Background(), query, at(240))
		if err != nil {
			t.Fatal(err)
		}
		if query == `a[5h]` && strings.Contains(got.String(), "9 @[10800]") {
			t.Fatal("_x2 is two gaps")
		}
		expect(t, query, got.String(), want)
	}
	got, _, _, err := client.Query(context.Background(), "b", at(3))
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "a series after its stale marker", got.String(), "")
}

func TestAScriptThatCantBeReadNamesTheLine(t *testing.T) {
	s := start(t, Options{}, "")
	for name, c := range map[string]struct{ script, line, says string }{
		"a series before any load":       {"\n\na 1", "line 3", "load <interval>"},
		"an interval that is none":       {"load soon\na 1", "line 1", "soon"},
		"an interval of 0":               {"load 0s\na 1", "line 1", "above 0"},
		"no interval":                    {"load", "line 1", "duration"},
		"a series that can't be parsed":  {"load 1m\n  a{ 1x3\n", "line 2", "a{ 1x3"},
		"a value that is none":           {"load 1m\n  a 1 x\n", "line 2", "parse error"},
		"a series without a name":        {"load 1m\n  {x=\"1\"} 1\n", "line 2", "no name"},
		"the command clear":              {"load 1m\n a 1\nclear", "line 3", "no values"},
		"a native histogram":             {"load 1m\n a {{count:1 sum:1}}", "line 2", "histogram"},
		"the same series twice":          {"load 1m\n a 1x5\n a 1", "line 3", "already has a sample at 5m"},
		"the same series in two blocks":  {"load 1m\n a 1x5\nload 1h\n a 1", "line 4", "already has a sample"},
		"a good line before a bad one":   {"load 1m\n kept 1x5\n }", "line 3", "}"},
		"a series that isn't valid text": {"load 1m\n a{x=\"\xff\"} 1", "line 2", ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := s.Load(c.script)
			if err == nil || !strings.Contains(err.Error(), c.line) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v lacks %q or %q", err, c.line, c.says)
			}
		})
	}
	names, _, _, err := prometheusClient(t, s.URL()).LabelNames(context.Background(), nil, at(0), at(60))
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "what refused scripts have stored", len(names), 0)
}
