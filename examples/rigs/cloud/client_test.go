// SPDX-License-Identifier: Apache-2.0

package cloud_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/codes/status"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/driver/drivertest"
	"github.com/machinist-dev/machinist/examples/rigs/cloud"
)

// hanging is a driver whose GetMachineStatus waits for the end of its context,
// says so, and fails with something else.
func hanging() (d driver.Driver, begun chan context.Context, ended chan error) {
	begun, ended = make(chan context.Context, 1), make(chan error, 1)
	return says{status: func(ctx context.Context, _ *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
		begun <- ctx
		<-ctx.Done()
		ended <- ctx.Err()
		return &driver.GetMachineStatusResponse{NodeName: "last word"}, ctx.Err()
	}}, begun, ended
}

func TestClient_Canceled_DriverContextEnds(t *testing.T) {
	d, begun, ended := hanging()
	client := dial(t, d)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-begun; cancel() }()
	resp, err := client.GetMachineStatus(ctx, &driver.GetMachineStatusRequest{Machine: machineNamed("a")})
	require.Equal(t, codes.Canceled, codes.Of(err))
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, <-ended, context.Canceled)
	require.Equal(t, "last word", resp.NodeName)
}

func TestClient_Canceled_NoLaterEffect(t *testing.T) {
	simulated := drivertest.NewCloud(drivertest.CloudOptions{})
	client := dial(t, simulated)
	class, secret := simulated.MachineClass("shoot", "small"), simulated.Secret("shoot", "small")
	var quick, cut int
	for i := range 2000 {
		m := machineNamed("a")
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			for range i % 40 {
				runtime.Gosched()
			}
			cancel()
		}()
		_, err := client.CreateMachine(ctx, &driver.CreateMachineRequest{Machine: m, MachineClass: class, Secret: secret})
		switch codes.Of(err) {
		case codes.OK:
			quick++
		case codes.Canceled:
			cut++
		default:
			require.NoError(t, err)
		}
		_, err = client.DeleteMachine(t.Context(), &driver.DeleteMachineRequest{Machine: m, MachineClass: class, Secret: secret})
		require.Contains(t, []codes.Code{codes.OK, codes.NotFound}, codes.Of(err), "%v", err)
		require.Empty(t, simulated.Snapshot().VMs, "round %d", i)
	}
	t.Logf("%d were quicker, %d were cut off", quick, cut)
	require.Eventually(t, func() bool { return simulated.Snapshot().Empty() }, 20*time.Second, time.Millisecond)
}

func TestClient_Canceled_OtherCallsGoOn(t *testing.T) {
	client := dial(t, drivertest.NewCloud(drivertest.CloudOptions{}))
	errs := make([]error, 16)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			for n := range 500 {
				ctx, cancel := context.WithCancel(t.Context())
				if i%2 == 0 { // at a moment when the call is just over, or nearly
					go func() {
						for range n % 100 {
							runtime.Gosched()
						}
						cancel()
					}()
				}
				_, err := client.GetVolumeIDs(ctx, &driver.GetVolumeIDsRequest{})
				cancel()
				if i%2 == 1 || codes.Of(err) != codes.Canceled {
					errs[i] = errors.Join(errs[i], err)
				}
			}
		})
	}
	wg.Wait()
	require.NoError(t, errors.Join(errs...))
}

func TestClient_DriverHangs_CallReturns(t *testing.T) {
	t.Parallel()
	stuck := make(chan struct{})
	begun := make(chan struct{})
	client := dial(t, says{list: func(context.Context, *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
		close(begun)
		<-stuck
		return nil, status.Error(codes.NotFound, "too late")
	}})
	defer close(stuck)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-begun; cancel() }()
	_, err := client.ListMachines(ctx, nil)
	require.Equal(t, codes.Canceled, codes.Of(err))
}

func TestClient_Deadline_ReachesTheDriver(t *testing.T) {
	d, begun, ended := hanging()
	client := dial(t, d)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := driver.WithDeadline(client, driver.Timeouts{}).GetMachineStatus(ctx, nil)
	there := <-begun
	deadline, ok := there.Deadline()
	require.True(t, ok)
	require.WithinDuration(t, time.Now(), deadline, 5*time.Second)
	require.Error(t, <-ended)
	require.Equal(t, codes.DeadlineExceeded, codes.Of(err))

	_, ok = func() (time.Time, bool) {
		go func() { _, _ = client.GetMachineStatus(t.Context(), nil) }()
		return (<-begun).Deadline()
	}()
	require.False(t, ok, "without a deadline here there is none there")
}

func TestClient_CanceledBefore_SendsNothing(t *testing.T) {
	var calls int
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls++ }))
	defer server.Close()
	client := dialURL(t, server.URL)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := client.ListMachines(ctx, nil)
	require.Equal(t, codes.Canceled, codes.Of(err))
	late, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	_, err = client.ListMachines(late, nil)
	require.Equal(t, codes.DeadlineExceeded, codes.Of(err))
	require.Zero(t, calls)
}

func TestClient_ServerDown_UnavailableUntilItReturns(t *testing.T) {
	simulated := drivertest.NewCloud(drivertest.CloudOptions{})
	class, secret := simulated.MachineClass("shoot", "small"), simulated.Secret("shoot", "small")
	list := &driver.ListMachinesRequest{MachineClass: class, Secret: secret}
	first := httptest.NewServer(cloud.Handler(simulated))
	address := first.Listener.Addr().String()
	client := dialURL(t, first.URL)
	_, err := client.ListMachines(t.Context(), list)
	require.NoError(t, err)

	first.Close()
	_, err = client.ListMachines(t.Context(), list)
	require.Equal(t, codes.Unavailable, codes.Of(err), "on the connection that was open, or on a new one")
	_, err = client.ListMachines(t.Context(), list)
	require.Equal(t, codes.Unavailable, codes.Of(err))
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	require.NotErrorIs(t, err, context.Canceled)

	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
	require.NoError(t, err)
	second := httptest.NewUnstartedServer(cloud.Handler(simulated))
	require.NoError(t, second.Listener.Close())
	second.Listener = listener
	second.Start()
	defer second.Close()
	_, err = client.ListMachines(t.Context(), list)
	require.NoError(t, err)
}

func TestClient_OtherServer_IsUnavailable(t *testing.T) {
	const ours = "application/vnd.machinist.driver.v1+json"
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   codes.Code
	}{
		"nothing there":           {http.NotFound, codes.Internal},
		"another server's JSON":   {func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") }, codes.Internal},
		"a redirection":           {http.RedirectHandler("/elsewhere", http.StatusTemporaryRedirect).ServeHTTP, codes.Internal},
		"no JSON":                 {say(ours, http.StatusOK, "{"), codes.Internal},
		"another kind of JSON":    {say(ours, http.StatusOK, "[]"), codes.Internal},
		"an invalid error":        {say(ours, http.StatusNotFound, "x"), codes.Internal},
		"an error without a code": {say(ours, http.StatusNotFound, "{}"), codes.Unknown},
		"an error with code OK":   {say(ours, http.StatusNotFound, `{"code":"OK","error":{"text":"x","code":"OK","message":"x"}}`), codes.Unknown},
		"an unknown code":         {say(ours, http.StatusNotFound, `{"code":"New","error":{"text":"x"}}`), codes.Unknown},
		"a broken text":           {say(ours, http.StatusNotFound, `{"code":"NotFound","error":{"text":["?"]}}`), codes.Internal},
		"only a code":             {say(ours, http.StatusNotFound, `{"code":"Aborted"}`), codes.Aborted},
		"half an answer": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", ours)
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, `{"MachineList":`)
			panic(http.ErrAbortHandler)
		}, codes.Unavailable},
		"an end without an answer": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, codes.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(c.answer)
			defer server.Close()
			resp, err := dialURL(t, server.URL).ListMachines(t.Context(), nil)
			require.Nil(t, resp)
			require.Equal(t, c.want, codes.Of(err), "%v", err)
		})
	}
}

// say answers everything with the same.
func say(mediaType string, code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", mediaType)
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

func TestClient_Redirect_SendsNoSecrets(t *testing.T) {
	for _, address := range []string{
		"", "127.0.0.1:8484", "http://", "http://10.0.0.1:1", "http://cloud.example", "ftp://127.0.0.1", "https://127.0.0.1", "unix:/x", "http://127.0.0.1.example:1",
		"http://127.0.0.1/?a=b", "http://127.0.0.1/#a", "http://user:geheim@127.0.0.1", "http://user:geheim@127.0.0.1:x", "http://0.0.0.0:1",
	} {
		client, err := cloud.Dial(address)
		require.Error(t, err, address)
		require.Nil(t, client)
		require.NotContains(t, err.Error(), "geheim")
	}
	for _, address := range []string{"http://127.0.0.1:8484", "http://127.0.0.2", "http://localhost:1/", "http://[::1]:8484/prefix/"} {
		_, err := cloud.Dial(address)
		require.NoError(t, err, address)
	}
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	t.Setenv("http_proxy", "http://127.0.0.1:1")
	_, err := dial(t, failing(status.Error(codes.NotFound, "reached"))).GetMachineStatus(t.Context(), nil)
	require.Equal(t, codes.NotFound, codes.Of(err))
}

func TestClient_PathPrefix_IsKept(t *testing.T) {
	mux := http.NewServeMux()
	mux.Handle("/clouds/a/", http.StripPrefix("/clouds/a", cloud.Handler(failing(status.Error(codes.NotFound, "reached")))))
	server := httptest.NewServer(mux)
	defer server.Close()
	for _, path := range []string{"/clouds/a", "/clouds/a/"} {
		_, err := dialURL(t, server.URL+path).GetMachineStatus(t.Context(), nil)
		require.Equal(t, codes.NotFound, codes.Of(err))
	}
}

func TestClient_ZeroOrNil_Fails(t *testing.T) {
	for _, client := range []*cloud.Client{nil, {}} {
		_, err := client.CreateMachine(t.Context(), nil)
		require.Equal(t, codes.Internal, codes.Of(err))
		client.Close()
	}
}

func TestClient_Error_HasNoSecrets(t *testing.T) {
	req := &driver.CreateMachineRequest{Machine: machineNamed("a"), Secret: secretWith(map[string][]byte{"userData": []byte("geheim-geheim")})}
	server := httptest.NewServer(http.NotFoundHandler())
	client := dialURL(t, server.URL)
	_, foreign := client.CreateMachine(t.Context(), req)
	server.Close()
	_, away := client.CreateMachine(t.Context(), req)
	for _, err := range []error{foreign, away} {
		for ; err != nil; err = errors.Unwrap(err) {
			require.NotContains(t, err.Error(), "geheim")
			require.NotContains(t, err.Error(), "Z2VoZWlt", "base64")
		}
	}
}
