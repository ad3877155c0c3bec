package amp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
)

var (
	errTooManySeries = errors.New("too many series")
	errShape         = errors.New("not the shape of a Prometheus answer")
)

// apiError is the server's own word that a request failed.
type apiError struct {
	Type    string `json:"errorType"`
	Text    string `json:"error"`
	Message string `json:"message"` // AWS's shape, in place of the two above
}

func (e *apiError) Error() string { return e.Type }

// decoder reads one answer in a single pass, whatever the order of its fields.
// An error anywhere, even after the last value, spoils the whole answer.
type decoder struct {
	*json.Decoder
	maxSeries int
}

func newDecoder(body io.Reader, maxSeries int) *decoder {
	return &decoder{json.NewDecoder(body), maxSeries}
}

// answer reads what a query came to.
func (d *decoder) answer() (Answer, error) {
	var answer Answer
	var resultType, shape string
	warnings, err := d.envelope(func() error {
		return d.object(func(key string) (err error) {
			switch key {
			case "resultType":
				return d.Decode(&resultType)
			case "result":
				answer.Series, shape, err = d.result()
				return err
			case "stats":
				answer.SamplesProcessed, err = d.samplesProcessed()
				return err
			}
			return d.skip()
		})
	})
	if err != nil {
		return Answer{}, err
	}
	if err := checkType(resultType, shape); err != nil {
		return Answer{}, err
	}
	answer.Warnings = warnings
	return answer, nil
}

// names reads a list of label names or values.
func (d *decoder) names() ([]string, error) {
	var names []string
	_, err := d.envelope(func() error { return d.Decode(&names) })
	return names, err
}

// labelSets reads a list of series without their samples.
func (d *decoder) labelSets() ([]map[string]string, error) {
	var sets []map[string]string
	_, err := d.envelope(func() error {
		return d.array(func() error {
			if len(sets) == d.maxSeries {
				return errTooManySeries
			}
			var labels map[string]string
			err := d.Decode(&labels)
			sets = append(sets, labels)
			return err
		})
	})
	return sets, err
}

// envelope reads what every answer has around its data, to the last byte: only
// there a checksum or a missing end shows. It gives the warnings, then the infos.
func (d *decoder) envelope(data func() error) ([]string, error) {
	var (
		status          string
		failure         apiError
		warnings, infos []string
		hasData         bool
	)
	err := d.object(func(key string) error {
		switch key {
		case "status":
			return d.Decode(&status)
		case "data":
			hasData = true
			return data()
		case "errorType":
			return d.Decode(&failure.Type)
		case "error":
			return d.Decode(&failure.Text)
		case "warnings":
			return d.Decode(&warnings)
		case "infos":
			return d.Decode(&infos)
		}
		return d.skip()
	})
	if err != nil {
		return nil, err
	}
	if err := d.end(); err != nil {
		return nil, err
	}
	if status == "error" {
		return nil, &failure
	}
	if status != "success" || !hasData {
		return nil, fmt.Errorf("%w: no data", errShape)
	}
	return append(warnings, infos...), nil
}

// result reads series of either shape, or a scalar, and says which it was:
// "vector", "matrix", "scalar", or "" for none.
func (d *decoder) result() (series []Series, shape string, err error) {
	if err := d.expect('['); err != nil {
		return nil, "", err
	}
	for d.More() {
		token, err := d.next()
		if err != nil {
			return nil, "", err
		}
		if at, ok := token.(float64); ok && len(series) == 0 {
			scalar, err := d.scalar(at)
			return []Series{scalar}, "scalar", err
		}
		if token != json.Delim('{') {
			return nil, "", fmt.Errorf("%w: a result that is no series", errShape)
		}
		if len(series) == d.maxSeries {
			return nil, "", errTooManySeries
		}
		one, oneShape, err := d.series()
		if err != nil {
			return nil, "", err
		}
		if shape != "" && shape != oneShape {
			return nil, "", fmt.Errorf("%w: vectors and matrices mixed", errShape)
		}
		series, shape = append(series, one), oneShape
	}
	return series, shape, d.expect(']')
}

// series reads the rest of an object whose brace has been read.
func (d *decoder) series() (Series, string, error) {
	var (
		labels map[string]string
		points []point
		shape  string
	)
	err := d.fields(func(key string) error {
		switch key {
		case "metric":
			return d.Decode(&labels)
		case "value":
			points, shape = make([]point, 1), "vector"
			return d.Decode(&points[0])
		case "values":
			shape = "matrix"
			return d.Decode(&points)
		}
		return d.skip()
	})
	if err != nil {
		return Series{}, "", err
	}
	if labels == nil || len(points) == 0 {
		return Series{}, "", fmt.Errorf("%w: a series without labels or samples", errShape)
	}
	times, values, err := columns(points)
	return Series{Labels: labels, Times: times, Values: values}, shape, err
}

func columns(points []point) (times []int64, values []float64, err error) {
	times, values = make([]int64, len(points)), make([]float64, len(points))
	for i, p := range points {
		if i > 0 && p.time <= times[i-1] {
			return nil, nil, fmt.Errorf("%w: timestamps that do not ascend", errShape)
		}
		times[i], values[i] = p.time, p.value
	}
	return times, values, nil
}

// scalar reads the rest of `[time, "value"]`.
func (d *decoder) scalar(at float64) (Series, error) {
	var text string
	if err := d.Decode(&text); err != nil {
		return Series{}, err
	}
	value, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return Series{}, fmt.Errorf("%w: a value that is no number", errShape)
	}
	return Series{Times: []int64{milliseconds(at)}, Values: []float64{value}}, d.expect(']')
}

func (d *decoder) samplesProcessed() (int64, error) {
	var stats struct {
		Samples struct {
			TotalQueryableSamples int64 `json:"totalQueryableSamples"`
		} `json:"samples"`
	}
	err := d.Decode(&stats)
	return stats.Samples.TotalQueryableSamples, err
}

func checkType(resultType, shape string) error {
	switch resultType {
	case "vector", "matrix", "scalar":
	default:
		return fmt.Errorf("%w: result type %.20q", errShape, resultType)
	}
	if shape != "" && shape != resultType {
		return fmt.Errorf("%w: a %s called %s", errShape, shape, resultType)
	}
	return nil
}

// point is one sample as the API writes it: `[seconds, "value"]`.
type point struct {
	time  int64 // Unix milliseconds
	value float64
}

// UnmarshalJSON is called with valid JSON, so that only the shape is in question.
func (p *point) UnmarshalJSON(b []byte) error {
	inner, isArray := between(b, '[', ']')
	at, value, isPair := bytes.Cut(inner, []byte{','})
	value, isText := between(bytes.TrimSpace(value), '"', '"')
	if !isArray || !isPair || !isText {
		return fmt.Errorf("%w: a sample that is no pair", errShape)
	}
	seconds, err := strconv.ParseFloat(string(bytes.TrimSpace(at)), 64)
	if err != nil {
		return fmt.Errorf("%w: a time that is no number", errShape)
	}
	p.time = milliseconds(seconds)
	if p.value, err = strconv.ParseFloat(string(value), 64); err != nil {
		return fmt.Errorf("%w: a value that is no number", errShape)
	}
	return nil
}

func between(b []byte, first, last byte) ([]byte, bool) {
	if len(b) < 2 || b[0] != first || b[len(b)-1] != last {
		return nil, false
	}
	return b[1 : len(b)-1], true
}

func milliseconds(seconds float64) int64 { return int64(math.Round(seconds * 1000)) }

// object reads an object; field must read the value of each key.
func (d *decoder) object(field func(key string) error) error {
	if err := d.expect('{'); err != nil {
		return err
	}
	return d.fields(field)
}

func (d *decoder) fields(field func(key string) error) error {
	for d.More() {
		token, err := d.next()
		if err != nil {
			return err
		}
		key, ok := token.(string)
		if !ok {
			return errShape
		}
		if err := field(key); err != nil {
			return err
		}
	}
	return d.expect('}')
}

// array reads an array; element must read each of its values.
func (d *decoder) array(element func() error) error {
	if err := d.expect('['); err != nil {
		return err
	}
	for d.More() {
		if err := element(); err != nil {
			return err
		}
	}
	return d.expect(']')
}

func (d *decoder) expect(delimiter json.Delim) error {
	token, err := d.next()
	if err != nil {
		return err
	}
	if token != delimiter {
		return fmt.Errorf("%w: no %v where one belongs", errShape, delimiter)
	}
	return nil
}

func (d *decoder) next() (json.Token, error) {
	token, err := d.Token()
	if errors.Is(err, io.EOF) {
		return nil, io.ErrUnexpectedEOF
	}
	return token, err
}

func (d *decoder) skip() error {
	var ignored json.RawMessage
	return d.Decode(&ignored)
}

func (d *decoder) end() error {
	_, err := d.Token()
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err == nil {
		return fmt.Errorf("%w: more than one value", errShape)
	}
	return err
}
