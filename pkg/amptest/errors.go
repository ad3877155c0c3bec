package amptest

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/prometheus/prometheus/promql"
)

// apiError is an error in Prometheus' shape: a status, a type that names the
// class, and a sentence.
type apiError struct {
	status int
	kind   string
	err    error
}

func (e *apiError) Error() string { return e.kind + ": " + e.err.Error() }
func (e *apiError) Unwrap() error { return e.err }

func (e *apiError) reply() reply {
	return reply{status: e.status, contentType: jsonType, body: mustJSON(struct {
		Status    string `json:"status"`
		ErrorType string `json:"errorType"`
		Error     string `json:"error"`
	}{"error", e.kind, e.err.Error()})}
}

func badData(err error) error {
	return &apiError{http.StatusBadRequest, "bad_data", err}
}

func execution(err error) error {
	return &apiError{http.StatusUnprocessableEntity, "execution", err}
}

// engineError maps what the engine reports to the statuses of Prometheus' API.
func engineError(err error) error {
	if _, ok := errors.AsType[promql.ErrQueryTimeout](err); ok {
		return &apiError{http.StatusServiceUnavailable, "timeout", err}
	}
	_, canceled := errors.AsType[promql.ErrQueryCanceled](err)
	if canceled || errors.Is(err, context.Canceled) {
		const clientClosedRequest = 499
		return &apiError{clientClosedRequest, "canceled", err}
	}
	if _, ok := errors.AsType[promql.ErrStorage](err); ok {
		return &apiError{http.StatusInternalServerError, "internal", err}
	}
	return execution(err)
}

// awsError is a refusal by AWS' gateway, which is not in Prometheus' shape.
type awsError struct {
	status  int
	kind    string // the exception, sent as the header x-amzn-ErrorType
	message string
}

var errUnknownOperation = &awsError{http.StatusNotFound, "UnknownOperationException", "Not Found"}

func (e *awsError) Error() string { return e.kind + ": " + e.message }

func (e *awsError) reply() reply {
	return reply{status: e.status, contentType: jsonType, errorType: e.kind, body: mustJSON(struct {
		Message string `json:"message"`
	}{e.message})}
}

// mustJSON encodes strings and structs and maps of them, which can't fail.
func mustJSON(v any) []byte {
	encoded, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return encoded
}
