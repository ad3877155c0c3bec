package amptest

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
)

const (
	defaultWorkspace = "ws-6d5c3a5e-0000-4000-8000-67707563"
	defaultRegion    = "us-east-1"

	lookbackDelta = 5 * time.Minute
	queryTimeout  = time.Minute

	// The log of requests serves tests; a demo that runs for days keeps only the latest.
	requestsKept = 4096
)

// Options configure a Server. The zero value is a workspace in us-east-1 that
// accepts unsigned requests, with AMP's own limits.
type Options struct {
	Workspace   string           // workspace id, "ws-..."
	Region      string           // the region that signatures must name
	Credentials Credentials      // zero: no signature wanted, as with a plain Prometheus
	Now         func() time.Time // the server's clock; nil: time.Now
	Limits      Limits
}

// Credentials are the one identity that may query the workspace. SessionToken
// is empty for long-term keys.
type Credentials struct {
	AccessKeyID, SecretAccessKey, SessionToken string
}

// Limits of a query. A zero field means AMP's own limit.
type Limits struct {
	Samples       int           // samples in memory at once; 50 million
	Points        int           // points per series of a range query; 11,000
	Range         time.Duration // end - start of a range query; 95 days
	LookBack      time.Duration // range plus offset of an instant query must stay below; 32 days
	ResponseBytes int           // bytes of the answer before compression; 50 MiB
}

const day = 24 * time.Hour

func (l Limits) withDefaults() Limits {
	return Limits{
		Samples:       cmp.Or(l.Samples, 50_000_000),
		Points:        cmp.Or(l.Points, 11_000),
		Range:         cmp.Or(l.Range, 95*day),
		LookBack:      cmp.Or(l.LookBack, 32*day),
		ResponseBytes: cmp.Or(l.ResponseBytes, 50<<20),
	}
}

// Request is one request that the server has answered.
type Request struct {
	Method           string
	Path             string
	Form             url.Values // parameters of the URL and of the body
	Header           http.Header
	Status           int
	SamplesProcessed int64 // what AMP would bill for it
}

// Server is one AMP workspace. Its methods may be called concurrently.
type Server struct {
	workspace string
	signature *signatureVerifier // nil: unsigned requests are accepted
	now       func() time.Time
	limits    Limits
	storage   *storage
	engine    *promql.Engine
	parser    parser.Parser
	http      *http.Server

	mu       sync.Mutex
	address  string
	requests []Request
	samples  int64
}

// New opens a workspace with no data in it. Close it to remove its files.
func New(opts Options) (*Server, error) {
	store, err := openStorage()
	if err != nil {
		return nil, fmt.Errorf("open the workspace's storage: %w", err)
	}
	s := &Server{
		workspace: cmp.Or(opts.Workspace, defaultWorkspace),
		now:       opts.Now,
		limits:    opts.Limits.withDefaults(),
		storage:   store,
		parser:    parser.NewParser(parser.Options{}),
	}
	if s.now == nil {
		s.now = time.Now
	}
	if opts.Credentials != (Credentials{}) {
		s.signature = &signatureVerifier{
			credentials: opts.Credentials,
			region:      cmp.Or(opts.Region, defaultRegion),
			now:         s.now,
		}
	}
	s.engine = promql.NewEngine(promql.EngineOpts{
		MaxSamples:           s.limits.Samples,
		Timeout:              queryTimeout,
		LookbackDelta:        lookbackDelta,
		EnableAtModifier:     true,
		EnableNegativeOffset: true,
		Parser:               s.parser,
	})
	s.http = &http.Server{Handler: s.Handler(), ReadHeaderTimeout: 10 * time.Second}
	return s, nil
}

// Listen starts to serve on addr, "host:port"; port 0 picks a free one. The
// error of a port in use says so.
func (s *Server) Listen(addr string) error {
	listener, err := net.Listen("tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%s is taken by another program: choose another address: %w", addr, err)
	}
	if err != nil {
		return fmt.Errorf("listen on %s: %w", addr, err)
	}
	s.mu.Lock()
	s.address = listener.Addr().String()
	s.mu.Unlock()
	go func() { _ = s.http.Serve(listener) }() // ends with Close
	return nil
}

// URL is the workspace's URL, what goes into a data source; "" before Listen.
func (s *Server) URL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.address == "" {
		return ""
	}
	return "http://" + s.address + "/workspaces/" + s.workspace
}

// SamplesProcessed is AMP's billing counter: the samples that all queries
// answered so far have processed.
func (s *Server) SamplesProcessed() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.samples
}

// Requests returns the requests answered, refused ones included, oldest first.
// Only the latest 4,096 are kept.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

func (s *Server) record(r Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.samples += r.SamplesProcessed
	if len(s.requests) == requestsKept {
		s.requests = slices.Delete(s.requests, 0, 1)
	}
	s.requests = append(s.requests, r)
}

// Close stops serving and removes the data.
func (s *Server) Close() error {
	return errors.Join(s.http.Close(), s.engine.Close(), s.storage.Close())
}
