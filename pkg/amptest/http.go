package amptest

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// answer is what an endpoint found out.
type answer struct {
	data             []byte // the JSON of the field "data"
	warnings, infos  []string
	samplesProcessed int64
}

// endpoint answers a request whose form is parsed. Its errors are *apiError.
type endpoint func(*http.Request) (answer, error)

// reply is a complete HTTP answer.
type reply struct {
	status      int
	contentType string
	errorType   string // AWS' header x-amzn-ErrorType; "" where it is not AWS that refuses
	body        []byte
}

const (
	jsonType = "application/json"
	textType = "text/plain; charset=utf-8"

	maxRequestBody = 10 << 20
)

// Handler serves the workspace's API below /workspaces/{id}, and below / as well
// where unsigned requests are accepted, as a plain Prometheus does.
func (s *Server) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, samples := s.answer(r)
		s.record(Request{
			Method: r.Method, Path: r.URL.Path, Form: r.Form, Header: r.Header.Clone(),
			Status: got.status, SamplesProcessed: samples,
		})
		got.write(w, r)
	})
}

// answer also returns the samples that the request is billed for.
func (s *Server) answer(r *http.Request) (reply, int64) {
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxRequestBody))
	if err != nil {
		return errorReply(badData(fmt.Errorf("read the request: %w", err))), 0
	}
	if s.signature != nil {
		if refused := s.signature.verify(r, body); refused != nil {
			return refused.reply(), 0
		}
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if err := r.ParseForm(); err != nil {
		return errorReply(badData(err)), 0
	}
	serve, err := s.route(r)
	if err != nil {
		return errorReply(err), 0
	}
	got, err := serve(r)
	if err != nil {
		return errorReply(err), 0
	}
	return s.success(got), got.samplesProcessed
}

// route finds the endpoint of a request, or says what is not there.
func (s *Server) route(r *http.Request) (endpoint, error) {
	path, found := strings.CutPrefix(r.URL.Path, "/workspaces/"+s.workspace)
	if !found && s.signature != nil || strings.HasPrefix(path, "/workspaces/") {
		return nil, &awsError{http.StatusNotFound, "ResourceNotFoundException", "Workspace not found"}
	}
	name, found := strings.CutPrefix(path, "/api/v1/")
	if !found {
		return nil, errUnknownOperation
	}
	if label, found := strings.CutPrefix(name, "label/"); found {
		return s.labelRoute(r.Method, label)
	}
	serve, found := map[string]endpoint{
		"query":       s.query,
		"query_range": s.queryRange,
		"labels":      s.labelNames,
		"series":      s.series,
	}[name]
	switch {
	case found && (r.Method == http.MethodGet || r.Method == http.MethodPost):
		return serve, nil
	case name == "metadata" && r.Method == http.MethodGet:
		return metadata, nil
	}
	return nil, errUnknownOperation
}

func (s *Server) labelRoute(method, path string) (endpoint, error) {
	label, found := strings.CutSuffix(path, "/values")
	if !found || method != http.MethodGet {
		return nil, errUnknownOperation
	}
	return func(r *http.Request) (answer, error) { return s.labelValues(r, label) }, nil
}

// success wraps an answer in Prometheus' envelope, unless it is too large.
func (s *Server) success(a answer) reply {
	body := appendEnvelope(nil, a)
	if len(body) > s.limits.ResponseBytes {
		return reply{
			status: http.StatusRequestEntityTooLarge, contentType: textType,
			body: fmt.Appendf(nil, "the response is larger than the limit of %d bytes", s.limits.ResponseBytes),
		}
	}
	return reply{status: http.StatusOK, contentType: jsonType, body: body}
}

func errorReply(err error) reply {
	if refused, ok := errors.AsType[*awsError](err); ok {
		return refused.reply()
	}
	failed, ok := errors.AsType[*apiError](err)
	if !ok {
		failed = &apiError{http.StatusInternalServerError, "internal", err}
	}
	return failed.reply()
}

func (a reply) write(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Type", a.contentType)
	if a.errorType != "" {
		header.Set("x-amzn-ErrorType", a.errorType)
	}
	// A write fails only when the client has gone: nobody is left to tell.
	if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		w.WriteHeader(a.status)
		_, _ = w.Write(a.body)
		return
	}
	header.Set("Content-Encoding", "gzip")
	header.Add("Vary", "Accept-Encoding")
	w.WriteHeader(a.status)
	compressed := gzip.NewWriter(w)
	_, _ = compressed.Write(a.body)
	_ = compressed.Close()
}
