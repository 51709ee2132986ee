// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/driver"
)

// MaxRequestBytes is the size limit of a request: the largest Secret, Machine and MachineClass
// that an API server stores.
const MaxRequestBytes = 8 << 20

// MaxAnswerBytes is the size limit of a response: a list of 100,000 VMs.
const MaxAnswerBytes = 16 << 20

const (
	// prefix is the beginning of the path of an operation.
	prefix = "/v1/"
	// mediaType distinguishes a response of a Handler from that of another server.
	mediaType = "application/vnd.machinist.driver.v1+json"
	// timeoutHeader is the header with the remaining time of the caller, as a duration.
	timeoutHeader = "Machinist-Timeout"
)

// Handler serves a driver at POST /v1/<operation>, see the package comment. [Dial] is the client.
//
// The context of a call ends when its client cancels or its time is over. An invalid request
// is InvalidArgument. An unknown operation is Unimplemented, and so are the optional methods
// that the driver does not have. A panic of the driver, a response without a JSON form and a
// nil driver are Internal. The handler logs nothing. It is safe for use by multiple
// goroutines.
func Handler(d driver.Driver) http.Handler {
	d = driver.Observe(d, nil, nil) // whatever d is, it has methods now
	return handler{
		driver.OpCreateMachine: operate(func(ctx context.Context, q *request) (*driver.CreateMachineResponse, error) {
			return d.CreateMachine(ctx, (*driver.CreateMachineRequest)(q.ofMachine()))
		}),
		driver.OpInitializeMachine: operate(func(ctx context.Context, q *request) (*driver.InitializeMachineResponse, error) {
			return d.InitializeMachine(ctx, (*driver.InitializeMachineRequest)(q.ofMachine()))
		}),
		driver.OpDeleteMachine: operate(func(ctx context.Context, q *request) (*driver.DeleteMachineResponse, error) {
			return d.DeleteMachine(ctx, (*driver.DeleteMachineRequest)(q.ofMachine()))
		}),
		driver.OpGetMachineStatus: operate(func(ctx context.Context, q *request) (*driver.GetMachineStatusResponse, error) {
			return d.GetMachineStatus(ctx, (*driver.GetMachineStatusRequest)(q.ofMachine()))
		}),
		driver.OpListMachines: operate(func(ctx context.Context, q *request) (*driver.ListMachinesResponse, error) {
			return d.ListMachines(ctx, (*driver.ListMachinesRequest)(q.ofClass()))
		}),
		driver.OpGetVolumeIDs: operate(func(ctx context.Context, q *request) (*driver.GetVolumeIDsResponse, error) {
			return d.GetVolumeIDs(ctx, (*driver.GetVolumeIDsRequest)(q.ofVolumes()))
		}),
		driver.OpListSideResources: operate(func(ctx context.Context, q *request) (*driver.ListSideResourcesResponse, error) {
			lister, ok := driver.As[driver.SideResourceLister](d)
			if !ok {
				return nil, status.Error(codes.Unimplemented, "this driver lists no side resources")
			}
			return lister.ListSideResources(ctx, (*driver.ListSideResourcesRequest)(q.ofClass()))
		}),
		driver.OpDeleteSideResource: operate(func(ctx context.Context, q *request) (*driver.DeleteSideResourceResponse, error) {
			deleter, ok := driver.As[driver.SideResourceDeleter](d)
			if !ok {
				return nil, status.Error(codes.Unimplemented, "this driver deletes no side resources")
			}
			return deleter.DeleteSideResource(ctx, (*driver.DeleteSideResourceRequest)(q.ofResource()))
		}),
	}
}

// answer is a response: the body and the values of the headers.
type answer struct {
	body       []byte
	code       codes.Code
	retryAfter time.Duration
}

// operation calls one method of the driver.
type operation func(ctx context.Context, q *request) answer

// operate returns the operation for a method. A panic becomes an error without its value.
func operate[R any](call func(context.Context, *request) (*R, error)) operation {
	return func(ctx context.Context, q *request) (a answer) {
		defer func() {
			if p := recover(); p != nil {
				a = refuse[R](status.Error(codes.Internal, fmt.Sprintf("the driver panicked with a %T", p)), nil)
			}
		}()
		response, err := call(ctx, q)
		if err != nil {
			return refuse(err, response)
		}
		body, err := encode(response)
		switch {
		case err != nil:
			return refuse[R](status.Error(codes.Internal, "the response of the driver has no form in JSON"), nil)
		case len(body) > MaxAnswerBytes:
			return refuse[R](tooLarge(), nil)
		}
		return answer{body: body}
	}
}

// refuse returns the answer for an error and its response. An error without a JSON form keeps
// only its code and wait.
func refuse[R any](err error, response *R) answer {
	out := answer{code: codes.Of(err), retryAfter: codes.RetryAfterOf(err)}
	var failed error
	out.body, failed = encode(newFailure(err, response))
	if failed != nil || len(out.body) > MaxAnswerBytes {
		short := status.Error(out.code, "what the driver said cannot be sent")
		out.body, _ = encode(newFailure[R](codes.WithRetryAfter(short, out.retryAfter), nil)) // texts of ours
	}
	return out
}

func tooLarge() error {
	return status.Error(codes.Internal, fmt.Sprintf("the answer has more than %d bytes", MaxAnswerBytes))
}

// handler serves operations by their names.
type handler map[driver.Operation]operation

// ServeHTTP implements [http.Handler].
func (h handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a := h.answer(w, r)
	header := w.Header()
	header.Set("Content-Type", mediaType)
	header.Set("Content-Length", strconv.Itoa(len(a.body)))
	if a.retryAfter > 0 {
		header.Set("Retry-After", strconv.FormatInt(int64((a.retryAfter+time.Second-1)/time.Second), 10))
	}
	w.WriteHeader(httpStatus(a.code))
	_, _ = w.Write(a.body) // the client sees an incomplete body
}

// answer decodes a request and runs it.
func (h handler) answer(w http.ResponseWriter, r *http.Request) answer {
	invalid := func(why string) answer {
		return refuse[struct{}](status.Error(codes.InvalidArgument, why), nil)
	}
	name, ok := strings.CutPrefix(r.URL.Path, prefix)
	do, known := h[driver.Operation(name)]
	if !ok || !known {
		return refuse[struct{}](status.Error(codes.Unimplemented, "there is no such operation"), nil)
	}
	if r.Method != http.MethodPost {
		return invalid("an operation is called by POST")
	}
	ctx := r.Context()
	if limit := r.Header.Get(timeoutHeader); limit != "" {
		d, err := time.ParseDuration(limit)
		if err != nil {
			return invalid("the header " + timeoutHeader + " is not a duration")
		}
		bounded, cancel := context.WithTimeout(ctx, d)
		defer cancel()
		ctx = bounded
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, MaxRequestBytes))
	if errors.As(err, new(*http.MaxBytesError)) {
		return invalid(fmt.Sprintf("the body has more than %d bytes", MaxRequestBytes))
	}
	if err != nil {
		return refuse[struct{}](status.Error(codes.Canceled, "the body did not arrive"), nil)
	}
	q, err := decodeRequest(body)
	if err != nil {
		return refuse[struct{}](err, nil)
	}
	return do(ctx, q)
}

// httpStatus returns the HTTP status for a code. [Client] only distinguishes 200.
func httpStatus(c codes.Code) int {
	switch c {
	case codes.OK:
		return http.StatusOK
	case codes.InvalidArgument:
		return http.StatusBadRequest
	case codes.Unauthenticated:
		return http.StatusUnauthorized
	case codes.PermissionDenied:
		return http.StatusForbidden
	case codes.NotFound:
		return http.StatusNotFound
	case codes.AlreadyExists, codes.Aborted, codes.OutOfRange, codes.Uninitialized, codes.FailedPrecondition:
		return http.StatusConflict
	case codes.ResourceExhausted:
		return http.StatusTooManyRequests
	case codes.Unimplemented:
		return http.StatusNotImplemented
	case codes.Unavailable:
		return http.StatusServiceUnavailable
	case codes.DeadlineExceeded:
		return http.StatusGatewayTimeout
	default:
		return http.StatusInternalServerError
	}
}
