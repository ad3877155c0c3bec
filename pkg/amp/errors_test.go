package amp_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gpucost/gpucost-amp-datasource/pkg/amp"
)

// canary stands for every secret that an answer might echo.
const canary = "IQoJb3JpZ2luX2VjCANARY"

func gzipped(t *testing.T, text string) []byte {
	t.Helper()
	var buffer bytes.Buffer
	w := gzip.NewWriter(&buffer)
	_, _ = io.WriteString(w, text)
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

// mustFail asks and gives the error, which must be an *amp.Error without the canary.
func mustFail(t *testing.T, client *amp.Client) *amp.Error {
	t.Helper()
	answer, err := client.Query(t.Context(), "up", noon)
	if answer.Series != nil || answer.Warnings != nil || answer.SamplesProcessed != 0 {
		t.Errorf("a part of an answer: %+v", answer)
	}
	var fault *amp.Error
	if !errors.As(err, &fault) {
		t.Fatalf("got %#v", err)
	}
	for _, shown := range []string{err.Error(), fmt.Sprintf("%+v", err), fmt.Sprintf("%#v", *fault), fmt.Sprintf("%v", fault.Err)} {
		if strings.Contains(shown, "CANARY") {
			t.Errorf("the canary shows: %s", shown)
		}
	}
	return fault
}

func TestRefusals(t *testing.T) {
	tests := []struct {
		name        string
		status      int
		contentType string
		body        string
		kind        amp.Kind
		says        string
	}{
		{"bad data is the writer's bug, in AMP's words", 400, "application/json", `{"status":"error","errorType":"bad_data","error":"parse error: unexpected <eof>"}`, amp.BadData, "unexpected <eof>"},
		{"too many samples comes with advice", 422, "application/json", `{"status":"error","errorType":"execution","error":"query processing would load too many samples into memory in query execution"}`, amp.TooManySamples, "shorter range"},
		{"another limit is a refusal in AMP's words", 422, "application/json", `{"status":"error","errorType":"execution","error":"the query time range exceeds the limit"}`, amp.Refused, "exceeds the limit"},
		{"413 in plain text is too large, with AMP's words", 413, "text/plain", "response larger than 50 MiB", amp.ResponseTooLarge, "50 MiB"},
		{"a timeout of the server is a timeout", 503, "application/json", `{"status":"error","errorType":"timeout","error":"query timed out"}`, amp.Timeout, "queryTimeout"},
		{"a 404 doubts the workspace", 404, "application/json", `{"message":"Not Found"}`, amp.NotFound, "workspace id"},
		{"a 404 in HTML shows its beginning", 404, "text/html", "<html>\n\x00 <b>nginx</b></html>", amp.NotFound, `unexpected content type "text/html", status 404: <html> <b>nginx</b></html>`},
		{"a 405 names the setting", 405, "text/plain", "Method Not Allowed", amp.MethodNotAllowed, "httpMethod"},
		{"a login page with status 200 is unexpected content", 200, "text/html; charset=utf-8", "<title>Sign in</title>", amp.UnexpectedContent, "unexpected content type \"text/html; charset=utf-8\", status 200: <title>Sign in"},
		{"XML with status 400 is unexpected content", 400, "application/xml", "<Error/>", amp.UnexpectedContent, `unexpected content type "application/xml"`},
		{"an answer without a content type is unexpected content", 200, "", empty, amp.UnexpectedContent, "unexpected content type"},
		{"an error in a success is still an error", 200, "application/json", `{"status":"error","errorType":"bad_data","error":"oh"}`, amp.BadData, "oh"},
		{"a text that echoes a signature is withheld", 400, "application/json", `{"message":"not a valid Authorization header: AWS4-HMAC-SHA256 Credential=` + canary + `"}`, amp.Refused, "shorter range"},

		{"403 not authorized asks for the permissions", 403, "application/json", `{"message":"User: arn:aws:iam::1:user/` + canary + ` is not authorized to perform: aps:QueryMetrics"}`, amp.AccessDenied, "aps:QueryMetrics"},
		{"403 in HTML never shows its body", 403, "text/html", "<p>" + canary + "</p>", amp.AccessDenied, "aps:GetSeries"},
		{"401 never shows its body", 401, "text/plain", canary, amp.AccessDenied, "basic auth"},
		{"403 wrong region names the setting", 403, "application/json", `{"message":"Credential should be scoped to a valid region. ` + canary + `"}`, amp.WrongRegion, "sigV4Region"},
		{"403 wrong service names the setting", 403, "application/json", `{"message":"Credential should be scoped to correct service: 'aps'. ` + canary + `"}`, amp.WrongService, "sigv4Service"},
		{"403 signature expired is a clock", 403, "application/json", `{"message":"Signature expired: 20260301T110000Z is now earlier than 20260301T115500Z ` + canary + `"}`, amp.ClockSkew, "clock"},
		{"403 signature from the future is a clock", 403, "application/json", `{"message":"Signature not yet current: ` + canary + `"}`, amp.ClockSkew, "clock"},
		{"403 unknown key names the key", 403, "application/json", `{"message":"The security token included in the request is invalid. ` + canary + `"}`, amp.InvalidKey, "sigV4AccessKey"},
		{"403 expired token says so", 403, "application/json", `{"message":"The security token included in the request is expired ` + canary + `"}`, amp.ExpiredToken, "expired"},
		{"403 mismatch wins over what the echoed request contains", 403, "application/json",
			`{"message":"The request signature we calculated does not match the signature you provided. The Canonical String for this request should have been 'POST signature expired x-amz-security-token:` + canary + `'"}`, amp.BadSignature, "sigV4SecretKey"},
		{"403 unsigned asks for SigV4", 403, "application/json", `{"message":"Missing Authentication Token ` + canary + `"}`, amp.MissingCredentials, "sigV4Auth"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			asked := 0
			client := amp.New(http.DefaultClient, serve(t, func(w http.ResponseWriter, _ *http.Request) {
				asked++
				w.Header()["Content-Type"] = []string{test.contentType}
				w.WriteHeader(test.status)
				_, _ = io.WriteString(w, test.body)
			}), amp.Options{})
			fault := mustFail(t, client)
			if fault.Kind != test.kind || fault.Status != test.status || !strings.Contains(fault.Message, test.says) {
				t.Errorf("got %s, status %d: %s", fault.Kind, fault.Status, fault.Message)
			}
			if asked != 1 {
				t.Errorf("asked %d times", asked)
			}
			if fault.BadQuery() != (test.kind == amp.BadData) {
				t.Errorf("BadQuery is %v", fault.BadQuery())
			}
		})
	}

	t.Run("of a long body at most 256 characters are shown", func(t *testing.T) {
		client := amp.New(http.DefaultClient, serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			_, _ = io.WriteString(w, strings.Repeat("é", 100_000))
		}), amp.Options{})
		if shown := strings.Count(mustFail(t, client).Message, "é"); shown != 256 {
			t.Errorf("%d shown", shown)
		}
	})

	t.Run("the kind may stand in a header of AWS alone", func(t *testing.T) {
		client := amp.New(http.DefaultClient, serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Amzn-Errortype", "ExpiredTokenException:http://internal.amazon.com/")
			w.WriteHeader(http.StatusForbidden)
		}), amp.Options{})
		if fault := mustFail(t, client); fault.Kind != amp.ExpiredToken {
			t.Errorf("got %v", fault)
		}
	})

	t.Run("a redirect names the host and is not followed", func(t *testing.T) {
		doer := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		client := amp.New(doer, serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "https://login.example.com/?token="+canary)
			w.WriteHeader(http.StatusFound)
		}), amp.Options{})
		fault := mustFail(t, client)
		if fault.Kind != amp.Redirected || !strings.Contains(fault.Message, "redirected to login.example.com)") {
			t.Errorf("got %v", fault)
		}
	})
}

func TestDamagedAnswers(t *testing.T) {
	vector := func(series string) string {
		return `{"status":"success","data":{"resultType":"vector","result":[` + series + `]}}`
	}
	matrix := func(values string) string {
		return `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":` + values + `}]}}`
	}
	bodies := map[string]string{
		"cut in the middle":                    empty[:len(empty)/2],
		"cut before the last brace":            empty[:len(empty)-1],
		"empty":                                "",
		"followed by more":                     empty + "x",
		"doubled":                              empty + empty,
		"null":                                 "null",
		"without data":                         `{"status":"success"}`,
		"without a status":                     `{"data":{"resultType":"vector","result":[]}}`,
		"of an unknown type":                   `{"status":"success","data":{"resultType":"string","result":[1,"a"]}}`,
		"a matrix called vector":               vector(`{"metric":{},"values":[[1,"1"]]}`),
		"vectors and matrices mixed":           vector(`{"metric":{},"value":[1,"1"]},{"metric":{},"values":[[1,"1"]]}`),
		"a scalar of three":                    `{"status":"success","data":{"resultType":"scalar","result":[1,"2","3"]}}`,
		"a scalar after a series":              vector(`{"metric":{},"value":[1,"1"]},1`),
		"a sample as a number":                 vector(`{"metric":{},"value":[1,1]}`),
		"a time as text":                       vector(`{"metric":{},"value":["1","1"]}`),
		"a sample of three":                    vector(`{"metric":{},"value":[1,"1","1"]}`),
		"a sample of one":                      vector(`{"metric":{},"value":[1]}`),
		"a sample as null":                     vector(`{"metric":{},"value":null}`),
		"a value that is no number":            vector(`{"metric":{},"value":[1,"x"]}`),
		"a series without labels":              vector(`{"value":[1,"1"]}`),
		"a series without samples":             vector(`{"metric":{}}`),
		"labels that are no text":              vector(`{"metric":{"a":1},"value":[1,"1"]}`),
		"a series as text":                     vector(`"a"`),
		"timestamps that descend":              matrix(`[[2,"1"],[1,"1"]]`),
		"timestamps twice":                     matrix(`[[1,"1"],[1,"1"]]`),
		"a result as an object":                `{"status":"success","data":{"resultType":"vector","result":{}}}`,
		"samples processed that are no number": `{"status":"success","data":{"resultType":"vector","result":[],"stats":{"samples":{"totalQueryableSamples":"many"}}}}`,
	}
	for name, body := range bodies {
		t.Run("an answer that is damaged, "+name+", gives an error and nothing else", func(t *testing.T) {
			if fault := mustFail(t, serveJSON(t, body)); fault.Kind != amp.Decode {
				t.Errorf("got %s: %v", fault.Kind, fault)
			}
		})
	}

	transfers := map[string]func(http.ResponseWriter){
		"shorter than its length": func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", fmt.Sprint(len(empty)+10))
			_, _ = io.WriteString(w, empty)
		},
		"of bad gzip": func(w http.ResponseWriter) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = io.WriteString(w, empty)
		},
		"of gzip with a wrong checksum": func(w http.ResponseWriter) {
			w.Header().Set("Content-Encoding", "gzip")
			body := gzipped(t, empty)
			body[len(body)-8] ^= 1
			_, _ = w.Write(body)
		},
		"of gzip cut before its checksum": func(w http.ResponseWriter) {
			w.Header().Set("Content-Encoding", "gzip")
			body := gzipped(t, empty)
			_, _ = w.Write(body[:len(body)-8])
		},
	}
	for name, write := range transfers {
		t.Run("a body "+name+" is asked for once more, then an error", func(t *testing.T) {
			asked := 0
			client := amp.New(http.DefaultClient, serve(t, func(w http.ResponseWriter, _ *http.Request) {
				asked++
				w.Header().Set("Content-Type", "application/json")
				write(w)
			}), amp.Options{})
			if fault := mustFail(t, client); fault.Kind != amp.Decode || asked != 2 {
				t.Errorf("asked %d times, got %v", asked, fault)
			}
		})
	}
}

func TestBounds(t *testing.T) {
	t.Run("an answer at the limit is taken, one byte more is refused with the limit's name", func(t *testing.T) {
		address := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, empty)
		})
		if _, err := amp.New(http.DefaultClient, address, amp.Options{MaxResponseBytes: int64(len(empty))}).Query(t.Context(), "up", noon); err != nil {
			t.Error(err)
		}
		fault := mustFail(t, amp.New(http.DefaultClient, address, amp.Options{MaxResponseBytes: int64(len(empty)) - 1}))
		if fault.Kind != amp.ResponseTooLarge || !strings.Contains(fault.Message, "limits.responseMB") {
			t.Errorf("got %v", fault)
		}
	})

	t.Run("a gzip bomb is stopped by its decompressed size", func(t *testing.T) {
		bomb := gzipped(t, `{"status":"success","padding":"`+strings.Repeat("a", 20<<20))
		client := amp.New(http.DefaultClient, serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(bomb)
		}), amp.Options{MaxResponseBytes: 1 << 20})
		if fault := mustFail(t, client); fault.Kind != amp.ResponseTooLarge || !strings.Contains(fault.Message, "1 MiB") {
			t.Errorf("got %v", fault)
		}
	})

	t.Run("more series than allowed is refused with the limit's name", func(t *testing.T) {
		address := serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if strings.HasSuffix(r.URL.Path, "/series") {
				_, _ = io.WriteString(w, `{"status":"success","data":[{"a":"1"},{"a":"2"},{"a":"3"}]}`)
				return
			}
			one := `{"metric":{},"value":[1,"1"]}`
			_, _ = io.WriteString(w, `{"status":"success","data":{"resultType":"vector","result":[`+one+","+one+","+one+`]}}`)
		})
		if answer, err := amp.New(http.DefaultClient, address, amp.Options{MaxSeries: 3}).Query(t.Context(), "up", noon); err != nil || len(answer.Series) != 3 {
			t.Errorf("got %v, %v", answer, err)
		}
		client := amp.New(http.DefaultClient, address, amp.Options{MaxSeries: 2})
		if fault := mustFail(t, client); fault.Kind != amp.TooManySeries || !strings.Contains(fault.Message, "more than 2, the limit that limits.series sets") {
			t.Errorf("got %v", fault)
		}
		if sets, err := client.Series(t.Context(), nil, noon, one, 0); sets != nil || err == nil || !strings.Contains(err.Error(), "limits.series") {
			t.Errorf("got %v, %v", sets, err)
		}
	})
}

// answers is a RoundTripper for tests of time: real connections would keep a
// synctest bubble from advancing its clock.
type answers func(*http.Request) (*http.Response, error)

func (f answers) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func jsonResponse(status int, header http.Header, body string) *http.Response {
	recorder := httptest.NewRecorder()
	maps.Copy(recorder.Header(), header)
	recorder.Header().Set("Content-Type", "application/json")
	recorder.WriteHeader(status)
	_, _ = recorder.WriteString(body)
	return recorder.Result()
}

func TestRetries(t *testing.T) {
	// script answers with one status after another, the last for good.
	script := func(asked *int, header http.Header, statuses ...int) *http.Client {
		return &http.Client{Transport: answers(func(*http.Request) (*http.Response, error) {
			status := statuses[min(*asked, len(statuses)-1)]
			*asked++
			if status == 200 {
				return jsonResponse(200, nil, empty), nil
			}
			return jsonResponse(status, header, `{"message":"Rate exceeded"}`), nil
		})}
	}

	for _, status := range []int{429, 500, 502, 503, 504} {
		t.Run(fmt.Sprintf("a %d is asked twice more and then mended", status), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				client := amp.New(script(&asked, nil, status, status, 200), "http://amp", amp.Options{})
				if _, err := client.Query(t.Context(), "up", noon); err != nil || asked != 3 {
					t.Errorf("asked %d times: %v", asked, err)
				}
			})
		})
		t.Run(fmt.Sprintf("a third %d is the answer", status), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := 0
				want := amp.Unavailable
				if status == 429 {
					want = amp.Throttled
				}
				fault := mustFail(t, amp.New(script(&asked, nil, status), "http://amp", amp.Options{}))
				if fault.Kind != want || fault.Status != status || asked != 3 {
					t.Errorf("asked %d times: %v", asked, fault)
				}
			})
		})
	}

	t.Run("a 501 is not asked again", func(t *testing.T) {
		asked := 0
		if fault := mustFail(t, amp.New(script(&asked, nil, 501), "http://amp", amp.Options{})); fault.Kind != amp.Unavailable || asked != 1 {
			t.Errorf("asked %d times: %v", asked, fault)
		}
	})

	t.Run("Retry-After is waited for, in seconds or as a date", func(t *testing.T) {
		for _, form := range []func(time.Time) string{
			func(time.Time) string { return "7" },
			func(now time.Time) string { return now.Add(7 * time.Second).UTC().Format(http.TimeFormat) },
		} {
			synctest.Test(t, func(t *testing.T) {
				asked, start := 0, time.Now()
				header := http.Header{"Retry-After": {form(start)}}
				client := amp.New(script(&asked, header, 429, 200), "http://amp", amp.Options{Timeout: time.Minute})
				_, err := client.Query(t.Context(), "up", noon)
				if waited := time.Since(start); err != nil || waited < 7*time.Second || waited > 8*time.Second {
					t.Errorf("waited %v: %v", waited, err)
				}
			})
		}
	})

	t.Run("a Retry-After beyond the deadline is an answer at once, also for the next caller", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			asked, start := 0, time.Now()
			client := amp.New(script(&asked, http.Header{"Retry-After": {"30"}}, 429), "http://amp", amp.Options{Timeout: 5 * time.Second})
			for range 2 {
				if fault := mustFail(t, client); fault.Kind != amp.Throttled {
					t.Errorf("got %v", fault)
				}
			}
			if time.Since(start) != 0 || asked != 1 {
				t.Errorf("asked %d times in %v", asked, time.Since(start))
			}
			time.Sleep(31 * time.Second)
			if _ = mustFail(t, client); asked != 2 {
				t.Errorf("the pause did not end")
			}
		})
	})

	t.Run("without a deadline a Retry-After of an hour is not waited for", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			asked, start := 0, time.Now()
			_ = mustFail(t, amp.New(script(&asked, http.Header{"Retry-After": {"3600"}}, 429), "http://amp", amp.Options{}))
			if time.Since(start) != 0 || asked != 1 {
				t.Errorf("asked %d times in %v", asked, time.Since(start))
			}
		})
	})

	t.Run("a retry is a fresh request with the whole body", func(t *testing.T) {
		var forms []string
		client := amp.New(http.DefaultClient, serve(t, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			forms = append(forms, string(body))
			w.WriteHeader(http.StatusBadGateway)
		}), amp.Options{})
		_ = mustFail(t, client)
		if len(forms) != 3 || forms[0] == "" || forms[2] != forms[0] {
			t.Errorf("got %q", forms)
		}
	})

	t.Run("a body can be read again, as signing needs", func(t *testing.T) {
		client := amp.New(&http.Client{Transport: answers(func(r *http.Request) (*http.Response, error) {
			if r.GetBody == nil {
				t.Error("GetBody is not set")
			}
			return jsonResponse(200, nil, empty), nil
		})}, "http://amp", amp.Options{})
		if _, err := client.Query(t.Context(), "up", noon); err != nil {
			t.Error(err)
		}
	})
}

func TestDeadlines(t *testing.T) {
	hang := func(t *testing.T) string {
		release := make(chan struct{})
		address := serve(t, func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-release:
			case <-r.Context().Done():
			}
		})
		t.Cleanup(func() { close(release) })
		return address
	}

	t.Run("a server that hangs ends with the client's timeout", func(t *testing.T) {
		fault := mustFail(t, amp.New(http.DefaultClient, hang(t), amp.Options{Timeout: 50 * time.Millisecond}))
		if fault.Kind != amp.Timeout || !errors.Is(fault, context.DeadlineExceeded) {
			t.Errorf("got %v", fault)
		}
	})

	t.Run("the http.Client's own timeout is a timeout as well", func(t *testing.T) {
		fault := mustFail(t, amp.New(&http.Client{Timeout: 50 * time.Millisecond}, hang(t), amp.Options{}))
		if fault.Kind != amp.Timeout {
			t.Errorf("got %v", fault)
		}
	})

	t.Run("a caller who leaves gets an answer at once", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
		time.AfterFunc(50*time.Millisecond, cancel)
		_, err := amp.New(http.DefaultClient, hang(t), amp.Options{}).Query(ctx, "up", noon)
		var fault *amp.Error
		if !errors.As(err, &fault) || fault.Kind != amp.Canceled || !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})

	t.Run("a caller who leaves during a wait for a retry has canceled", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			client := amp.New(&http.Client{Transport: answers(func(*http.Request) (*http.Response, error) {
				return jsonResponse(429, http.Header{"Retry-After": {"9"}}, ""), nil
			})}, "http://amp", amp.Options{})
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(time.Second, cancel)
			_, err := client.Query(ctx, "up", noon)
			if !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
		})
	})

	t.Run("a body that hangs ends with the timeout and is no half answer", func(t *testing.T) {
		client := amp.New(http.DefaultClient, serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, empty[:len(empty)-1])
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}), amp.Options{Timeout: 50 * time.Millisecond})
		if fault := mustFail(t, client); fault.Kind != amp.Timeout {
			t.Errorf("got %v", fault)
		}
	})
}

func TestNoWayToTheServer(t *testing.T) {
	t.Run("a refused connection names the host and the reason", func(t *testing.T) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		address := listener.Addr().String()
		_ = listener.Close()
		fault := mustFail(t, amp.New(http.DefaultClient, "http://"+address, amp.Options{}))
		if fault.Kind != amp.Unreachable || !strings.Contains(fault.Message, address) || !strings.Contains(fault.Message, "connection refused") {
			t.Errorf("got %v", fault)
		}
	})

	t.Run("an unknown certificate is named", func(t *testing.T) {
		server := httptest.NewUnstartedServer(http.NotFoundHandler())
		server.Config.ErrorLog = log.New(io.Discard, "", 0)
		server.StartTLS()
		defer server.Close()
		fault := mustFail(t, amp.New(&http.Client{Transport: &http.Transport{}}, server.URL, amp.Options{}))
		if fault.Kind != amp.Unreachable || !strings.Contains(fault.Message, "certificate") {
			t.Errorf("got %v", fault)
		}
	})

	t.Run("https to a plain server says so", func(t *testing.T) {
		address := serve(t, func(http.ResponseWriter, *http.Request) {})
		fault := mustFail(t, amp.New(http.DefaultClient, strings.Replace(address, "http:", "https:", 1), amp.Options{}))
		if fault.Kind != amp.Unreachable || !strings.Contains(fault.Message, "speaks http") {
			t.Errorf("got %v", fault)
		}
	})

	failures := []struct {
		name string
		err  error
		kind amp.Kind
		says string
	}{
		{"an unknown name is named", &net.OpError{Op: "dial", Err: &net.DNSError{Err: "no such host", Name: "aps.nowhere"}}, amp.Unreachable, "lookup aps.nowhere: no such host"},
		{"a dial that times out is no slow query", &net.OpError{Op: "dial", Err: &net.DNSError{Err: "i/o timeout", IsTimeout: true}}, amp.Unreachable, "i/o timeout"},
		{"an unknown failure keeps its text to itself", errors.New("panic caught: " + canary), amp.Unreachable, "the request failed"},
		{"an auth type that Grafana forbids names both variables", errors.New("trying to use non-allowed auth method ec2_iam_role " + canary), amp.CredentialsNotAllowed, "GF_AWS_FORWARD_SETTINGS_TO_PLUGINS"},
		{"assuming roles forbidden names the variable", errors.New("trying to use assume role but it is disabled in grafana config"), amp.AssumeRoleNotAllowed, "GF_AWS_ASSUME_ROLE_ENABLED"},
		{"no role names the variable, even when it was wanted to assume another", errors.New("operation error STS: AssumeRole, failed to refresh cached credentials, no EC2 IMDS role found, " + canary), amp.NoRole, "GF_PLUGINS_FORWARD_HOST_ENV_VARS=gpucost-amp-datasource"},
		{"a role that can't be assumed names the settings", errors.New("operation error STS: AssumeRole, https response error StatusCode: 403, " + canary), amp.AssumeRoleFailed, "sigV4AssumeRoleArn"},
		{"a profile that doesn't exist names the setting", errors.New("failed to get shared config profile, " + canary), amp.NoProfile, "sigV4Profile"},
		{"a CA bundle names the variable", errors.New("unable to add custom RootCAs HTTPClient, has no WithTransportOptions, *http.Client"), amp.CABundle, "AWS_CA_BUNDLE"},
		{"keys left empty are missing credentials", errors.New("static credentials are empty"), amp.MissingCredentials, "sigV4AuthType"},
	}
	for _, test := range failures {
		t.Run(test.name, func(t *testing.T) {
			var asked atomic.Int32
			client := amp.New(&http.Client{Transport: answers(func(*http.Request) (*http.Response, error) {
				asked.Add(1)
				return nil, test.err
			})}, "http://amp.example", amp.Options{})
			fault := mustFail(t, client)
			if fault.Kind != test.kind || fault.Status != 0 || !strings.Contains(fault.Message, test.says) || asked.Load() != 1 {
				t.Errorf("asked %d times, got %s: %v", asked.Load(), fault.Kind, fault)
			}
		})
	}
}
