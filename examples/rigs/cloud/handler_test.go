// SPDX-License-Identifier: Apache-2.0

package cloud_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/examples/rigs/cloud"
)

// ask sends a request as it is and returns the answer.
func ask(t testing.TB, h http.Handler, method, path, body string, header ...string) (*httptest.ResponseRecorder, codes.Code) {
	t.Helper()
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), method, "/", strings.NewReader(body))
	r.URL.Path = path
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	h.ServeHTTP(w, r)
	require.Equal(t, "application/vnd.machinist.driver.v1+json", w.Header().Get("Content-Type"))
	if w.Code == http.StatusOK {
		require.True(t, json.Valid(w.Body.Bytes()))
		return w, codes.OK
	}
	var answer struct {
		Code  *codes.Code
		Error struct{ Text any }
	}
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &answer))
	require.NotNil(t, answer.Code)
	require.NotEmpty(t, answer.Error.Text)
	require.NotEqual(t, codes.OK, *answer.Code)
	return w, *answer.Code
}

func TestHandler_InvalidRequest_ExplainsItself(t *testing.T) {
	h := cloud.Handler(drivertest.NewCloud(drivertest.CloudOptions{}))
	for name, c := range map[string]struct {
		method, path, body string
		header             []string
		status             int
		code               codes.Code
	}{
		"unknown operation":     {"POST", "/v1/Nope", "{}", nil, 501, codes.Unimplemented},
		"another version":       {"POST", "/v2/CreateMachine", "{}", nil, 501, codes.Unimplemented},
		"lower case":            {"POST", "/v1/createmachine", "{}", nil, 501, codes.Unimplemented},
		"longer path":           {"POST", "/v1/CreateMachine/", "{}", nil, 501, codes.Unimplemented},
		"root":                  {"GET", "/", "", nil, 501, codes.Unimplemented},
		"not POST":              {"GET", "/v1/CreateMachine", "", nil, 400, codes.InvalidArgument},
		"no body":               {"POST", "/v1/CreateMachine", "", nil, 400, codes.InvalidArgument},
		"no JSON":               {"POST", "/v1/CreateMachine", "{", nil, 400, codes.InvalidArgument},
		"two bodies":            {"POST", "/v1/CreateMachine", "{}{}", nil, 400, codes.InvalidArgument},
		"a list":                {"POST", "/v1/CreateMachine", "[]", nil, 400, codes.InvalidArgument},
		"a wrong kind":          {"POST", "/v1/CreateMachine", `{"Machine": "a"}`, nil, 400, codes.InvalidArgument},
		"no request":            {"POST", "/v1/CreateMachine", "null", nil, 400, codes.InvalidArgument},
		"no machine":            {"POST", "/v1/CreateMachine", "{}", nil, 400, codes.InvalidArgument},
		"no volumes":            {"POST", "/v1/GetVolumeIDs", "{}", nil, 200, codes.OK},
		"an invalid duration":   {"POST", "/v1/GetVolumeIDs", "{}", []string{"Machinist-Timeout", "soon"}, 400, codes.InvalidArgument},
		"a time that is over":   {"POST", "/v1/GetVolumeIDs", "{}", []string{"Machinist-Timeout", "-1s"}, 504, codes.DeadlineExceeded},
		"a body beyond measure": {"POST", "/v1/GetVolumeIDs", `{"x":"` + strings.Repeat("x", cloud.MaxRequestBytes) + `"}`, nil, 400, codes.InvalidArgument},
	} {
		t.Run(name, func(t *testing.T) {
			w, code := ask(t, h, c.method, c.path, c.body, c.header...)
			require.Equal(t, c.status, w.Code)
			require.Equal(t, c.code, code)
		})
	}
}

func TestHandler_JSON_CanBeWrittenByHand(t *testing.T) {
	simulated := drivertest.NewCloud(drivertest.CloudOptions{})
	body := `{"Machine": {"metadata": {"name": "a", "namespace": "shoot"}},
		"MachineClass": {"metadata": {"name": "small"}, "provider": "simulated", "providerSpec": {"scope": "mine"}},
		"Secret": {"data": {"userData": "eA=="}}}`
	w, _ := ask(t, cloud.Handler(simulated), http.MethodPost, "/v1/CreateMachine", body)
	require.Equal(t, 200, w.Code, w.Body)
	require.Equal(t, "mine", simulated.Snapshot().VMs[0].Scope)
	var answer driver.CreateMachineResponse
	require.NoError(t, json.Unmarshal(w.Body.Bytes(), &answer))
	require.Equal(t, simulated.Snapshot().VMs[0].ProviderID, answer.ProviderID)
}

func TestHandler_RetryAfter_IsInTheHeader(t *testing.T) {
	w, code := ask(t, cloud.Handler(failing(codes.WithRetryAfter(status.Error(codes.ResourceExhausted, "x"), 1100*time.Millisecond))), http.MethodPost, "/v1/GetMachineStatus", "{}")
	require.Equal(t, codes.ResourceExhausted, code)
	require.Equal(t, http.StatusTooManyRequests, w.Code)
	require.Equal(t, "2", w.Header().Get("Retry-After"))
}

func TestHandler_EveryFailure_HasAnErrorStatus(t *testing.T) {
	for _, c := range append(codes.All(), 99) {
		if c == codes.OK {
			continue
		}
		w, code := ask(t, cloud.Handler(failing(status.Error(c, "x"))), http.MethodPost, "/v1/GetMachineStatus", "{}")
		require.Equal(t, c, code)
		require.GreaterOrEqual(t, w.Code, 400)
	}
}

func TestHandler_EveryOperation_IsServed(t *testing.T) {
	h := cloud.Handler(drivertest.NewCloud(drivertest.CloudOptions{}))
	for _, op := range append(driver.Operations(), driver.OpListSideResources) {
		_, code := ask(t, h, http.MethodPost, "/v1/"+string(op), "null")
		require.Equal(t, codes.InvalidArgument, code, op)
	}
}

func TestHandler_Error_HasNothingOfTheRequest(t *testing.T) {
	h := cloud.Handler(drivertest.NewCloud(drivertest.CloudOptions{Credential: "right"}))
	for _, body := range []string{
		`{"Secret":{"data":{"credential":"geheim!"}}}`,
		`{"Secret":{"data":{"credential":geheim}}}`,
		`{"Secret":{"data":{"credential":12345678}}}`,
		`{"Secret":{"data":"geheim"}}`,
		`{"Secret":{"metadata":{"creationTimestamp":"geheim"}}}`,
		`{"PVSpecs":[{"capacity":{"storage":"geheim"}}]}`,
		`{"MachineClass":{"providerSpec":{"key":"geheim"}},"ProviderSpecBytes":"geheim?"}`,
	} {
		for _, op := range append(driver.Operations(), driver.OpListSideResources) {
			w, code := ask(t, h, http.MethodPost, "/v1/"+string(op), body)
			if op != driver.OpGetVolumeIDs {
				require.Equal(t, codes.InvalidArgument, code)
			}
			require.NotContains(t, w.Body.String(), "geheim")
			require.NotContains(t, w.Body.String(), "12345678")
		}
	}
}

func TestHandler_DriverPanics_InternalWithoutTheValue(t *testing.T) {
	for _, value := range []any{"geheim", fmt.Errorf("geheim"), http.ErrAbortHandler} {
		d := says{status: func(context.Context, *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
			panic(value)
		}}
		w, code := ask(t, cloud.Handler(d), http.MethodPost, "/v1/GetMachineStatus", "{}")
		require.Equal(t, codes.Internal, code)
		require.NotContains(t, w.Body.String(), "geheim")
	}
	var none *drivertest.Cloud
	for _, d := range []driver.Driver{nil, none} {
		for _, op := range driver.Operations() {
			_, code := ask(t, cloud.Handler(d), http.MethodPost, "/v1/"+string(op), "{}")
			require.Equal(t, codes.Internal, code)
		}
	}
}

// boom is an error that cannot say what it is.
type boom struct{}

func (boom) Error() string { panic("boom") }

func TestHandler_ErrorPanics_Internal(t *testing.T) {
	_, code := ask(t, cloud.Handler(failing(boom{})), http.MethodPost, "/v1/GetMachineStatus", "{}")
	require.Equal(t, codes.Internal, code)
}

func FuzzHandler(f *testing.F) {
	for _, op := range append(driver.Operations(), driver.OpListSideResources, "Nope", "") {
		for _, body := range []string{
			"", "null", "{}", "[]", `{"Machine":null}`, `{"PVSpecs":[null]}`, "{\"Machine\":{\"metadata\":{\"name\":\"\xff\"}}}",
			`{"Machine":{"metadata":{"name":"a"}},"MachineClass":{"provider":"simulated","providerSpec":{"scope":1}},"Secret":{"data":{"userData":"eA=="}}}`,
			`{"MachineClass":{"provider":"simulated"},"ProviderSpecBytes":"/w==","Secret":{}}`,
		} {
			f.Add("/v1/"+string(op), []byte(body), "1s")
		}
	}
	h := cloud.Handler(drivertest.NewCloud(drivertest.CloudOptions{Quota: 10}))
	f.Fuzz(func(t *testing.T, path string, body []byte, timeout string) {
		w, code := ask(t, h, http.MethodPost, path, string(body), "Machinist-Timeout", timeout)
		server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, _ *http.Request) { // the client takes it for what it is
			rw.Header().Set("Content-Type", w.Header().Get("Content-Type"))
			rw.WriteHeader(w.Code)
			_, _ = rw.Write(bytes.Clone(w.Body.Bytes()))
		}))
		defer server.Close()
		_, err := dialURL(t, server.URL).GetMachineStatus(t.Context(), nil)
		if code != codes.OK {
			require.Equal(t, code, codes.Of(err))
		}
	})
}

// FuzzAnswer decodes any response: it gives a code and does not panic.
func FuzzAnswer(f *testing.F) {
	for _, s := range []string{
		"", "null", "{}", `{"code":"NotFound"}`, `{"code":5,"error":{"text":["/w=="],"code":"Aborted","message":"x","wraps":[{"canceled":true},{"deadlineExceeded":true,"text":"context deadline exceeded"}]}}`,
		`{"error":{"retryAfterNanoseconds":-1,"message":"x"},"retryAfterNanoseconds":9223372036854775807,"response":{"NodeName":"a"}}`,
	} {
		f.Add(404, []byte(s))
		f.Add(200, []byte(s))
	}
	var code int
	var body []byte
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/vnd.machinist.driver.v1+json")
		w.WriteHeader(code)
		_, _ = w.Write(body)
	}))
	f.Cleanup(server.Close)
	client := dialURL(f, server.URL)
	f.Fuzz(func(t *testing.T, c int, b []byte) {
		code, body = max(200, c%1000), b
		if code == 204 || code == 304 {
			code++ // these have no body
		}
		_, err := client.GetMachineStatus(t.Context(), nil)
		require.Equal(t, err == nil, codes.Of(err) == codes.OK)
		if err != nil {
			_ = err.Error()
			require.True(t, code != http.StatusOK || codes.Of(err) == codes.Internal)
		}
	})
}
