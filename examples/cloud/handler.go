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

// OpListSideResources and OpDeleteSideResource are the optional methods of a driver that
// are served beside [driver.Operations].
const (
	OpListSideResources  driver.Operation = "ListSideResources"
	OpDeleteSideResource driver.Operation = "DeleteSideResource"
)

// MaxRequestBytes is how large the body of a request may be. It has room for
// the largest Secret, Machine and MachineClass that an API server stores.
const MaxRequestBytes = 8 << 20

// MaxAnswerBytes is how large an answer may be: room for a hundred thousand VMs
// in a list.
const MaxAnswerBytes = 16 << 20

const (
	// prefix is what the path of an operation begins with.
	prefix = "/v1/"
	// mediaType tells an answer of a Handler from that of any other server.
	mediaType = "application/vnd.machinist.driver.v1+json"
	// timeoutHeader says how much time the caller has left, as time.Duration
	// prints it.
	timeoutHeader = "Machinist-Timeout"
)

// Handler serves a driver at POST /v1/<operation>; see the package comment for
// the form. [Dial] is the other side.
//
// The context of a call ends when its client gives up or its time is over. A
// request that cannot be read is InvalidArgument, an operation that there is not
// is Unimplemented, and so are ListSideResources if the driver is no
// [driver.SideResourceLister], and DeleteSideResource if it is no [driver.SideResourceDeleter]. A driver that panics, and a response without a
// form in JSON, are Internal; with a nil driver every call is. The handler logs
// nothing, and is safe for use by multiple goroutines if the driver is.
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
		OpListSideResources: operate(func(ctx context.Context, q *request) (*driver.ListSideResourcesResponse, error) {
			lister, ok := driver.As[driver.SideResourceLister](d)
			if !ok {
				return nil, status.Error(codes.Unimplemented, "this driver lists no side resources")
			}
			return lister.ListSideResources(ctx, (*driver.ListSideResourcesRequest)(q.ofClass()))
		}),
		OpDeleteSideResource: operate(func(ctx context.Context, q *request) (*driver.DeleteSideResourceResponse, error) {
			deleter, ok := driver.As[driver.SideResourceDeleter](d)
			if !ok {
				return nil, status.Error(codes.Unimplemented, "this driver deletes no side resources")
			}
			return deleter.DeleteSideResource(ctx, (*driver.DeleteSideResourceRequest)(q.ofResource()))
		}),
	}
}

// answer is what goes back: the body, and what the headers make of it.
type answer struct {
	body       []byte
	code       codes.Code
	retryAfter time.Duration
}

// operation carries out one method of the driver.
type operation func(ctx context.Context, q *request) answer

// operate makes an operation of a call. A panic becomes an error that does not
// show its value.
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

// refuse makes an answer of an error and the response next to it. An error that
// cannot be sent loses all but its code and waiting time.
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
	_, _ = w.Write(a.body) // nobody is left to be told
}

// answer reads a request and has it carried out.
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
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
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

// httpStatus returns the HTTP status that comes nearest to a code. Clients of
// ours only ask whether it is 200.
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
