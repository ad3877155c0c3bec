package amp

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	backoffBase = 200 * time.Millisecond
	// A longer Retry-After is not waited for: the panel's reader has left by then.
	maxRetryAfter = time.Minute
	// Error bodies are short; the rest of a long one adds nothing.
	maxErrorBytes = 64 << 10
)

// errNoTime says that a wait would outlast the deadline.
var errNoTime = errors.New("no time left before the deadline")

type contextHeaders struct{}

// WithHeaders lets AMP's query log tell which dashboard and panel asked: of the
// incoming headers, X-Dashboard-Uid and X-Panel-Id go out with every request
// made under the context. The others are left behind.
func WithHeaders(ctx context.Context, incoming http.Header) context.Context {
	kept := http.Header{}
	for _, name := range []string{"X-Dashboard-Uid", "X-Panel-Id"} {
		if value := incoming.Get(name); value != "" {
			kept.Set(name, value)
		}
	}
	return context.WithValue(ctx, contextHeaders{}, kept)
}

// fetch asks until there is an answer that decode accepts, a fault that a
// retry can't mend, or no time left. Its errors are *Error.
func (c *Client) fetch(ctx context.Context, method, path string, form url.Values, decode func(*decoder) error) error {
	if c.options.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.options.Timeout)
		defer cancel()
	}
	for try := 0; ; try++ {
		fault := c.attempt(ctx, method, path, form, decode)
		if fault == nil {
			return nil
		}
		if try >= fault.retries() {
			return fault
		}
		if err := c.waitToRetry(ctx, try, fault); errors.Is(err, errNoTime) {
			return fault
		} else if err != nil {
			return c.contextFault(ctx)
		}
	}
}

// attempt makes a fresh request each time: a retry must be signed anew.
func (c *Client) attempt(ctx context.Context, method, path string, form url.Values, decode func(*decoder) error) *Error {
	if err := c.limiter.acquire(ctx); err != nil {
		return c.waitFault(ctx, err)
	}
	defer c.limiter.release()

	request, err := c.request(ctx, method, path, form)
	if err != nil {
		return c.fault(Unreachable, 0, "the URL is not valid")
	}
	response, err := c.http.Do(request)
	if err != nil {
		return c.transportFault(ctx, err)
	}
	defer func() { _ = response.Body.Close() }()

	if response.StatusCode != http.StatusOK {
		return c.statusFault(response)
	}
	if !isJSON(response) {
		return c.contentFault(response, readErrorBody(response))
	}
	body := http.MaxBytesReader(nil, response.Body, c.options.MaxResponseBytes)
	if err := decode(newDecoder(body, c.options.MaxSeries)); err != nil {
		return c.bodyFault(ctx, response.StatusCode, err)
	}
	return nil
}

func (c *Client) request(ctx context.Context, method, path string, form url.Values) (*http.Request, error) {
	address, encoded := c.baseURL+"/api/v1/"+path, form.Encode()
	var body io.Reader
	if method == http.MethodPost {
		body = strings.NewReader(encoded) // http.NewRequest sets GetBody for it, which signing needs
	} else {
		address += "?" + encoded
	}
	request, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		return nil, err
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		// Queries change nothing. An empty key isn't sent; it lets net/http
		// repeat a POST that met a connection the server had just closed.
		request.Header["Idempotency-Key"] = nil
	}
	if c.options.UserAgent != "" {
		request.Header.Set("User-Agent", c.options.UserAgent)
	}
	if headers, ok := ctx.Value(contextHeaders{}).(http.Header); ok {
		for name := range headers {
			request.Header.Set(name, headers.Get(name))
		}
	}
	return request, nil
}

// waitToRetry gives errNoTime at once if a retry doesn't fit before the
// deadline, and the context's error when that ends first.
func (c *Client) waitToRetry(ctx context.Context, try int, fault *Error) error {
	if fault.retryAfter > maxRetryAfter {
		return errNoTime
	}
	wait := fault.retryAfter + rand.N(backoffBase<<try) // full jitter: clients must not return in step
	if fault.Kind == Throttled {
		c.limiter.pause(wait)
	}
	return sleep(ctx, wait)
}

// waitFault explains why a request wasn't sent.
func (c *Client) waitFault(ctx context.Context, err error) *Error {
	if errors.Is(err, errNoTime) {
		return c.fault(Throttled, 0, "")
	}
	return c.contextFault(ctx)
}

// limiter is one data source's manners: a bounded number of requests at a
// time, and none while AMP has asked to wait.
type limiter struct {
	slots  chan struct{}
	mu     sync.Mutex
	resume time.Time
}

func newLimiter(concurrency int) limiter {
	return limiter{slots: make(chan struct{}, concurrency)}
}

// acquire waits for its turn. It gives errNoTime at once if the pause outlasts
// the deadline, and the context's error when that ends first.
func (l *limiter) acquire(ctx context.Context) error {
	l.mu.Lock()
	pause := time.Until(l.resume)
	l.mu.Unlock()
	if err := sleep(ctx, pause); err != nil {
		return err
	}
	select {
	case l.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *limiter) release() { <-l.slots }

func (l *limiter) pause(wait time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if until := time.Now().Add(wait); until.After(l.resume) {
		l.resume = until
	}
}

// sleep gives errNoTime at once if the deadline comes first.
func sleep(ctx context.Context, wait time.Duration) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if wait <= 0 {
		return nil
	}
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= wait {
		return errNoTime
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// retryAfter reads seconds or an HTTP date; 0 = absent or past.
func retryAfter(header http.Header) time.Duration {
	value := header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}
