package plugin

import (
	"context"
	"errors"
	"net/http"

	"github.com/grafana/grafana-plugin-sdk-go/backend"
	"github.com/grafana/grafana-plugin-sdk-go/data"

	"github.com/gpucost/gpucost-amp-datasource/pkg/amp"
	"github.com/gpucost/gpucost-amp-datasource/pkg/query"
)

// settingsError is what every question to a data source with wrong settings is answered with.
type settingsError struct{ err error }

func (e settingsError) Error() string {
	return "The data source's settings are wrong. " + e.err.Error()
}

func (e settingsError) Unwrap() error { return e.err }

// failed is the answer to a query that failed. This is the one place where errors get a status and a source: what the
// user, the settings or AMP can mend is downstream, what we must mend is ours.
func failed(err error, frames data.Frames) backend.DataResponse {
	status, source := classify(err)
	return backend.DataResponse{Frames: frames, Error: err, Status: status, ErrorSource: source}
}

func classify(err error) (backend.Status, backend.ErrorSource) {
	var (
		wrongQuery *query.Error
		parameter  parameterError
		settings   settingsError
		fault      *amp.Error
	)
	switch {
	case errors.As(err, &wrongQuery), errors.As(err, &settings), errors.As(err, &parameter):
		return backend.StatusBadRequest, backend.ErrorSourceDownstream
	case errors.As(err, &fault):
		return statusOf(fault), sourceOf(fault)
	case errors.Is(err, context.DeadlineExceeded):
		return backend.StatusTimeout, backend.ErrorSourceDownstream
	case errors.Is(err, context.Canceled):
		return statusCanceled, backend.ErrorSourceDownstream
	default:
		return backend.StatusInternal, backend.ErrorSourcePlugin
	}
}

// statusCanceled is nginx's status for a client that left.
const statusCanceled backend.Status = 499

func statusOf(fault *amp.Error) backend.Status {
	switch {
	case fault.Kind == amp.Timeout:
		return backend.StatusTimeout
	case fault.Kind == amp.Canceled:
		return statusCanceled
	case fault.Kind == amp.Throttled:
		return backend.StatusTooManyRequests // also where the client held the request back by itself
	case fault.Status >= http.StatusBadRequest:
		return backend.Status(fault.Status)
	default:
		return backend.StatusBadGateway
	}
}

func sourceOf(fault *amp.Error) backend.ErrorSource {
	if fault.BadQuery() {
		return backend.ErrorSourcePlugin
	}
	return backend.ErrorSourceDownstream
}
