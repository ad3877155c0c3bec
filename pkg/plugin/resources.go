package plugin

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/grafana/grafana-plugin-sdk-go/backend"

	"github.com/gpucost/gpucost-amp-datasource/pkg/plan"
)

// routes are the resource calls. All answer JSON, and errors as {"message": "..."}.
func (d *DataSource) routes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /business-units", d.list(d.businessUnits))
	mux.Handle("GET /namespaces", d.list(d.namespaces))
	mux.Handle("GET /clusters", d.list(d.clusters))
	mux.Handle("GET /gpu-models", d.list(d.gpuModels))
	mux.Handle("GET /utilization-metrics", d.resource(d.utilizationMetrics))
	mux.Handle("POST /explain", d.resource(d.explain))
	return mux
}

// resource answers with what a function returns.
func (d *DataSource) resource(answer func(*http.Request) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if d.broken != nil {
			writeError(w, settingsError{d.broken})
			return
		}
		found, err := answer(r)
		if err != nil {
			writeError(w, err)
			return
		}
		writeJSON(w, http.StatusOK, found)
	})
}

func writeError(w http.ResponseWriter, err error) {
	status, _ := classify(err)
	writeJSON(w, int(status), map[string]string{"message": err.Error()})
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		backend.Logger.Error("Answer not written", "error", err)
	}
}

// item is an entry of a dropdown.
type item struct {
	Value string `json:"value"`
	Label string `json:"label"`
}

type items struct {
	Items []item `json:"items"`
	More  bool   `json:"more"` // there are more than the limit allows
}

// defaultLimit is how many entries a dropdown gets that asks for no number.
const defaultLimit = 1000

// list serves names as the entries of a dropdown: those that contain the parameter q, in any case, at most limit.
func (d *DataSource) list(names func(context.Context, plan.Scope) ([]string, error)) http.Handler {
	return d.resource(func(r *http.Request) (any, error) {
		params := r.URL.Query()
		scope, err := d.scope(params)
		if err != nil {
			return nil, err
		}
		limit, err := integer(params, "limit", defaultLimit)
		if err != nil {
			return nil, err
		}
		found, err := names(r.Context(), scope)
		if err != nil {
			return nil, err
		}
		list := items{Items: []item{}}
		search := strings.ToLower(params.Get("q"))
		for _, name := range found {
			if !strings.Contains(strings.ToLower(name), search) {
				continue
			}
			if int64(len(list.Items)) == limit {
				list.More = true
				break
			}
			list.Items = append(list.Items, item{Value: name, Label: name})
		}
		return list, nil
	})
}

// parameterError says which parameter of a resource call is wrong.
type parameterError struct{ problem string }

func (e parameterError) Error() string { return e.problem }

// defaultRange is looked at by calls that name no range.
const defaultRange = 6 * time.Hour

// scope reads from, to (Unix ms), clusters and namespaces (repeated, or lists with commas).
func (d *DataSource) scope(params url.Values) (plan.Scope, error) {
	now := d.now().Truncate(time.Millisecond)
	to, err := integer(params, "to", now.UnixMilli())
	if err != nil {
		return plan.Scope{}, err
	}
	from, err := integer(params, "from", to-defaultRange.Milliseconds())
	if err != nil {
		return plan.Scope{}, err
	}
	s := plan.Scope{
		From: time.UnixMilli(from).UTC(), To: time.UnixMilli(min(to, now.UnixMilli())).UTC(),
		Clusters: texts(params, "clusters"), Namespaces: texts(params, "namespaces"),
	}
	if !s.From.Before(s.To) {
		return plan.Scope{}, parameterError{"from: must be before to, and not in the future"}
	}
	return s, nil
}

func integer(params url.Values, name string, fallback int64) (int64, error) {
	text := params.Get(name)
	if text == "" {
		return fallback, nil
	}
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil || v < 0 {
		return 0, parameterError{fmt.Sprintf("%s: %q is not a whole number of at least 0", name, text)}
	}
	return v, nil
}

func texts(params url.Values, name string) []string {
	var list []string
	for _, value := range params[name] {
		for part := range strings.SplitSeq(value, ",") {
			if part = strings.TrimSpace(part); part != "" {
				list = append(list, part)
			}
		}
	}
	return list
}

func (d *DataSource) businessUnits(ctx context.Context, s plan.Scope) ([]string, error) {
	found, err := plan.Namespaces(ctx, d.client, d.options, s)
	return d.options.BusinessUnitsOf(found), err
}

func (d *DataSource) namespaces(ctx context.Context, s plan.Scope) ([]string, error) {
	s.Namespaces = nil
	return plan.Namespaces(ctx, d.client, d.options, s)
}

func (d *DataSource) clusters(ctx context.Context, s plan.Scope) ([]string, error) {
	found, err := d.probe(ctx, s.From, s.To)
	return found.Clusters, err
}

func (d *DataSource) gpuModels(ctx context.Context, s plan.Scope) ([]string, error) {
	return plan.GPUModels(ctx, d.client, d.options, s)
}

// utilizationMetric is an entry of /utilization-metrics.
type utilizationMetric struct {
	Name    string `json:"name"`
	Unit    string `json:"unit"`
	Devices int    `json:"devices"`
}

func (d *DataSource) utilizationMetrics(r *http.Request) (any, error) {
	s, err := d.scope(r.URL.Query())
	if err != nil {
		return nil, err
	}
	found, err := plan.UtilizationMetrics(r.Context(), d.client, d.options, s.To)
	if err != nil {
		return nil, err
	}
	list := []utilizationMetric{}
	for _, m := range found {
		list = append(list, utilizationMetric{m.Name, string(m.Unit), m.Devices})
	}
	return map[string]any{"items": list}, nil
}

// maxQuery bounds the query that a call to /explain may carry.
const maxQuery = 1 << 20

func readQuery(r *http.Request) (json.RawMessage, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxQuery+1))
	if err != nil {
		return nil, err
	}
	if len(body) > maxQuery {
		return nil, parameterError{"query: is larger than 1 MiB"}
	}
	return body, nil
}
