// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machinist-dev/machinist"
	"github.com/machinist-dev/machinist/codes"
	"github.com/machinist-dev/machinist/driver"
	"github.com/machinist-dev/machinist/internal/facts"
	"github.com/machinist-dev/machinist/machine"
	"github.com/machinist-dev/machinist/machine/v1alpha1"
)

// even is randomness that is always the same.
func even(seed uint64) *rand.ChaCha8 { return rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)}) }

// newToken is the Secret of a token of the machine m, as the API server returns it.
func newToken(seed uint64, expires time.Time, changes ...func(*corev1.Secret)) *corev1.Secret {
	s, err := machine.NewBootstrapToken(newMachine("m"), expires, nil, even(seed))
	if err != nil {
		panic(err)
	}
	s.UID, s.ResourceVersion = types.UID(fmt.Sprint("token-uid-", seed)), "3"
	for _, c := range changes {
		c(s)
	}
	return s
}

func tokenOf(s *corev1.Secret) machine.BootstrapToken {
	t, _ := machine.TokenOf(s)
	return t
}

func TestNewBootstrapToken_Secret_IsValid(t *testing.T) {
	expires := time.Date(2026, 3, 1, 14, 0, 0, 999, time.FixedZone("x", 3600))
	groups := []string{"system:bootstrappers:worker", "system:bootstrappers:a:b-1"}
	s, err := machine.NewBootstrapToken(newMachine("m"), expires, groups, even(1))
	require.NoError(t, err)
	id, text := string(s.Data["token-id"]), string(s.Data["token-secret"])
	require.Regexp(t, `^[a-z0-9]{6}$`, id)
	require.Regexp(t, `^[a-z0-9]{16}$`, text)
	want := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "kube-system", Name: "bootstrap-token-" + id,
			Labels:      map[string]string{v1alpha1.TokenOwnerLabel: "uid-m"},
			Annotations: map[string]string{v1alpha1.TokenMachineAnnotation: "shoot/m"},
		},
		Type: "bootstrap.kubernetes.io/token",
		Data: map[string][]byte{
			"token-id": []byte(id), "token-secret": []byte(text), "expiration": []byte("2026-03-01T13:00:00Z"),
			"usage-bootstrap-authentication": []byte("true"), "usage-bootstrap-signing": []byte("true"),
			"auth-extra-groups": []byte("system:bootstrappers:worker,system:bootstrappers:a:b-1"),
			"description":       s.Data["description"],
		},
	}
	require.Empty(t, cmp.Diff(want, s))
	token := tokenOf(s)
	require.Equal(t, id, token.ID())
	require.Equal(t, id+"."+text, token.Reveal())
	require.True(t, token.Expires().Equal(expires.Truncate(time.Second)))
	require.NotContains(t, newToken(1, now).Data, "auth-extra-groups", "none are none")
	require.Equal(t, types.UID(""), facts.TokenOwner(nil))
}

func TestNewBootstrapToken_ManyTokens_AreRandom(t *testing.T) {
	random, letters, ids := even(7), map[byte]int{}, map[string]bool{}
	const tokens = 3000
	for range tokens { // DM-27: the names of these machines end alike
		s, err := machine.NewBootstrapToken(newMachine("worker-abc12"), now, nil, random)
		require.NoError(t, err)
		ids[s.Name] = true
		for _, c := range append(slices.Clone(s.Data["token-id"]), s.Data["token-secret"]...) {
			letters[c]++
		}
	}
	require.Len(t, ids, tokens)
	require.Len(t, letters, 32)
	want := tokens * 22 / 32
	for c, n := range letters {
		require.InDelta(t, want, n, float64(want)/5, "%c is as likely as any other", c)
	}
}

func TestNewBootstrapToken_MissingArgument_Error(t *testing.T) {
	m, random, boom := newMachine("m"), even(1), errors.New("boom")
	nameless, invalid := newMachine("m"), newMachine("m")
	nameless.UID, invalid.UID = "", "a b"
	for want, tc := range map[string]struct {
		m       *v1alpha1.Machine
		expires time.Time
		random  io.Reader
	}{
		"bootstrap token: the machine is nil": {nil, now, random},
		"bootstrap token: metadata.uid of machine shoot/m is empty: an API server sets it, a fake clientset does not": {nameless, now, random},
		`bootstrap token: metadata.uid "a b" of machine shoot/m is not a valid label value`:                           {invalid, now, random},
		"bootstrap token: the time of expiry is zero":                                                                 {m, time.Time{}, random},
		"bootstrap token: the random source is nil":                                                                   {m, now, nil},
		"bootstrap token of machine shoot/m: random source: boom":                                                     {m, now, iotest.ErrReader(boom)},
	} {
		s, err := machine.NewBootstrapToken(tc.m, tc.expires, nil, tc.random)
		require.EqualError(t, err, want)
		require.Nil(t, s)
	}
	for _, bad := range []string{
		"", "system:masters", "system:bootstrappers", "system:bootstrappers:", "system:bootstrappers:A", "system:bootstrappers:a-",
		"system:bootstrappers:a,system:masters", " system:bootstrappers:a", "system:bootstrappers:a\n", "system:bootstrappers:" + strings.Repeat("a", 257),
	} {
		_, err := machine.NewBootstrapToken(m, now, []string{"system:bootstrappers:0-:b", bad}, random)
		require.EqualError(t, err, fmt.Sprintf("bootstrap token of machine shoot/m: %q is not a valid group", bad))
	}
	_, err := machine.NewBootstrapToken(m, now, []string{"admins"}, random)
	require.Error(t, err, "the first group")
}

func data(key, value string) func(*corev1.Secret) {
	return func(s *corev1.Secret) { s.Data[key] = []byte(value) }
}

// malformed are the ways in which a Secret of ours may be no token to join with.
var malformed = map[string]func(*corev1.Secret){
	"an ID of another form":        data("token-id", "ABCDEF"),
	"the name of another ID":       func(s *corev1.Secret) { s.Name = "bootstrap-token-aaaaaa" },
	"a secret of another form":     data("token-secret", "short"),
	"a secret with capitals":       data("token-secret", "ABCDEFGHIJKLMNOP"),
	"a secret with an end of line": data("token-secret", "abcdefghijklmno\n"),
	"no secret":                    func(s *corev1.Secret) { delete(s.Data, "token-secret") },
	"no data":                      func(s *corev1.Secret) { s.Data = nil },
	"no end":                       func(s *corev1.Secret) { delete(s.Data, "expiration") },
	"an end of another form":       data("expiration", "tomorrow"),
	"a group of another kind":      data("auth-extra-groups", "system:masters"),
	"no permission to join":        data("usage-bootstrap-authentication", "false"),
}

// TestBootstrapToken_TextAndJSON_OnlyTheID asserts that printing, marshaling or logging a token, or a value
// that has one, does not show it (DM-27).
func TestBootstrapToken_TextAndJSON_OnlyTheID(t *testing.T) {
	secret := newToken(1, now.Add(time.Hour))
	text := string(secret.Data["token-secret"])
	token := tokenOf(secret)
	in := after(intended, needsToken, tokens(secret), absent)
	d := lawful(t, in, machine.DefaultPolicy())
	require.Equal(t, token.Reveal(), d.Action.(machine.CallDriver).Token.Reveal())
	type hidden struct{ token machine.BootstrapToken }
	for name, v := range map[string]any{
		"token": token, "pointer": &token, "in a field": hidden{token}, "in a list": []machine.BootstrapToken{token},
		"as a key": map[machine.BootstrapToken]bool{token: true},
		"action":   d.Action, "decision": d, "pointer to a decision": &d, "observation": in, "pointer to an observation": &in, "tokens": in.Tokens,
		"an action that writes": machinist.Update{Before: secret, Object: secret},
		"an action on a token":  machinist.Delete{Object: secret},
		"no token":              machine.BootstrapToken{},
	} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			require.NotContains(t, fmt.Sprintf(verb, v), text, "%s %s", name, verb)
			require.NotContains(t, fmt.Sprintf(verb, v), fmt.Sprintf("%x", text), "%s %s", name, verb)
		}
		out, err := json.Marshal(v)
		require.NoError(t, err, name)
		require.NotContains(t, string(out), text, name)
		require.NotContains(t, string(out), "token-secret", name)
	}
}

// needsToken is a class whose user data have a place for a token.
func needsToken(in *machine.Observation) { in.Class.NeedsToken = true }

func tokens(secrets ...*corev1.Secret) change {
	return func(in *machine.Observation) { in.Tokens = machine.TokensView{Looked: true, Secrets: secrets} }
}

func TestBootstrapToken_Creation_BeforeTheVM(t *testing.T) {
	creating := func(changes ...change) machine.Observation {
		return after(append([]change{intended, needsToken, absent}, changes...)...)
	}
	good := newToken(1, now.Add(15*time.Minute)) // the creation timeout is over then
	create := "create the VM (NoVM)"
	made := "create a bootstrap token until 2026-03-01T12:20:01Z (BootstrapToken)"
	drop := func(s *corev1.Secret) string {
		return "delete secret " + s.Name + " (BootstrapToken: it is expired or invalid)"
	}
	unread := "nothing (BootstrapToken: the bootstrap tokens were not read); waits for secrets/kube-system: BootstrapToken: the bootstrap tokens were not read"
	blocked := requested(corev1.ConditionUnknown, "Unauthenticated") // the timeout has not begun
	table := map[string]decisionCase{
		"without one, it is made":         {creating(tokens()), made},
		"one of ours is taken":            {creating(tokens(good)), create},
		"the tokens were not read":        {creating(), unread},
		"not for one that exists (DM-40)": {creating(tokens(), seen(machine.Uninitialized)), "update machine m: provider ID simulated:///1 (VMKnown)"},
		"one that has expired goes":       {creating(tokens(newToken(1, now))), drop(newToken(1, now))},
		"one that ends before the machine has to join is kept, and not taken": {creating(tokens(newToken(1, now.Add(15*time.Minute-time.Second)))), made},
		"that of another machine is not ours (DM-27)":                         {creating(tokens(newToken(1, now.Add(time.Hour), owned("uid-other")))), made},
		"one without an owner does not count":                                 {creating(tokens(nil, newToken(1, now.Add(time.Hour), owned("")))), made},
		"nor is a secret that only looks like it":                             {creating(tokens(newToken(1, now, func(s *corev1.Secret) { s.Type = "Opaque" }))), made},
		"one that is being deleted is none any more":                          {creating(tokens(newToken(1, now.Add(time.Hour), func(s *corev1.Secret) { s.DeletionTimestamp = &metav1.Time{Time: now} }))), made},
		"a good one is taken, whatever is beside it":                          {creating(tokens(newToken(2, now), good)), create},
		"a machine that may take for ever has a day":                          {creating(tokens(), mayTake("0s")), "create a bootstrap token until 2026-03-02T12:00:01Z (BootstrapToken)"},
		"not one for less": {creating(tokens(newToken(1, now.Add(10*time.Minute-time.Second))), blocked), made},
		"a clock that is behind makes no token too short": {creating(tokens(), spec(func(m *v1alpha1.Machine) {
			m.CreationTimestamp = metav1.NewTime(now.Add(time.Minute))
		})), "create a bootstrap token until 2026-03-01T12:21:01Z (BootstrapToken)"},
	}
	for name, change := range malformed {
		token := newToken(1, now.Add(time.Hour), change)
		table["one with "+name+" goes"] = decisionCase{creating(tokens(token)), drop(token)}
	}
	check(t, machine.DefaultPolicy(), table)

	d := lawful(t, creating(tokens(newToken(2, now), good, newToken(3, now.Add(time.Hour)))), machine.DefaultPolicy())
	require.Equal(t, tokenOf(newToken(3, now.Add(time.Hour))).ID(), d.Action.(machine.CallDriver).Token.ID(), "the one that lasts")
	d = lawful(t, creating(tokens(newToken(1, now))), machine.DefaultPolicy())
	require.Equal(t, machinist.Delete{Object: newToken(1, now)}, d.Action)
}

func owned(uid string) func(*corev1.Secret) {
	return func(s *corev1.Secret) { s.Labels = map[string]string{v1alpha1.TokenOwnerLabel: uid} }
}

func TestBootstrapToken_NotNeeded_IsDeleted(t *testing.T) {
	mine := tokens(newToken(1, now.Add(time.Hour)))
	gone := "delete secret bootstrap-token-nlthqp (BootstrapToken: the machine does not need it)"
	check(t, machine.DefaultPolicy(), map[string]decisionCase{
		"a Pending machine has to join with it":       {living(pending, mine), "nothing (WaitingForNode: the node has not joined yet); waits for node/n: WaitingForNode: the node has not joined yet"},
		"one that crashed needs it again":             {after(append(crashed, mine, failure(driver.OpCreateMachine, codes.ResourceExhausted, 0, machine.NotLooked))...), "nothing (ProviderFailed: no quota); waits for provider: ProviderFailed: no quota"},
		"one that failed before it had a VM does not": {after(intended, mine, phase(failed)), gone},
		"nor does one that runs":                      {living(running, healthy, copied, mine), gone},
		"without a cluster there are none":            {living(available, noTarget, mine), "nothing (Available)"},
	})
}

// TestBootstrapToken_RandomTokens_EndInAValidOne plays creations over tokens of all kinds:
// each comes to its VM with a token that lasts, and no secret of anybody else is
// touched.
func TestBootstrapToken_RandomTokens_EndInAValidOne(t *testing.T) {
	t.Parallel()
	kinds := []func(*corev1.Secret){
		func(*corev1.Secret) {}, owned("x"), owned(""), func(s *corev1.Secret) { s.Type = "Opaque" }, func(s *corev1.Secret) { s.Namespace = "shoot" },
		func(s *corev1.Secret) { s.DeletionTimestamp = &metav1.Time{Time: now} },
	}
	for _, change := range malformed {
		kinds = append(kinds, change)
	}
	for seed := range uint64(1000) {
		r := rand.New(rand.NewPCG(seed, 5))
		var secrets []*corev1.Secret
		for i := range r.Uint64N(4) {
			secrets = append(secrets, newToken(seed*10+i, pick(r, moment(r).Add(time.Second), now.Add(30*time.Minute)), kinds[r.IntN(len(kinds))]))
		}
		in := after(intended, needsToken, tokens(secrets...), absent)
		in.Machine.CreationTimestamp = metav1.NewTime(pick(r, now, now.Add(-time.Minute), now.Add(time.Minute), now.Add(-time.Minute-time.Millisecond)))
		p := pick(r, machine.DefaultPolicy(), machine.Policy{}, machine.Policy{CreationTimeout: 90*time.Second + time.Millisecond}, machine.Policy{CreationTimeout: 1 << 62})
		w := &world{in: in, policy: p, now: now, fast: true}
		for range 10 {
			goesOn, err := w.step()
			require.NoError(t, err)
			require.True(t, goesOn, "seed %d: %s", seed, w.last)
			if a, ok := w.last.Action.(machinist.Delete); ok {
				i := slices.IndexFunc(secrets, func(s *corev1.Secret) bool { return s == a.Object })
				require.Equal(t, types.UID("uid-m"), facts.TokenOwner(secrets[max(i, 0)]))
				require.Equal(t, corev1.SecretTypeBootstrapToken, secrets[max(i, 0)].Type)
			}
			if operationOf(w.last.Action) == driver.OpCreateMachine {
				break
			}
		}
		a, ok := w.last.Action.(machine.CallDriver)
		require.True(t, ok, "seed %d: %s", seed, w.last)
		require.False(t, a.Token.IsZero())
		require.True(t, a.Token.Expires().After(now))
		if p.CreationTimeout > 0 {
			require.False(t, a.Token.Expires().Before(in.Machine.CreationTimestamp.Add(p.CreationTimeout)), "seed %d", seed)
		}
	}
}

func TestRenderUserData_EachPlaceholder_IsReplaced(t *testing.T) {
	token := tokenOf(newToken(1, now))
	for text, want := range map[string]string{
		"a <<MACHINE_NAME>> <<BOOTSTRAP_TOKEN>>":          "a m/1 " + token.Reveal(),
		"x=%3C%3CMACHINE_NAME%3E%3E":                      "x=m%2F1",
		"<<MACHINE_NAME>> %3C%3CMACHINE_NAME%3E%3E":       "m/1 %3C%3CMACHINE_NAME%3E%3E",
		"<<BOOTSTRAP_TOKEN>> %3C%3CBOOTSTRAP_TOKEN%3E%3E": token.Reveal() + " %3C%3CBOOTSTRAP_TOKEN%3E%3E",
	} {
		require.Equal(t, want, string(machine.RenderUserData([]byte(text), "m/1", token)))
	}
	require.Equal(t, "<<BOOTSTRAP_TOKEN>>", string(machine.RenderUserData([]byte("<<MACHINE_NAME>>"), "<<BOOTSTRAP_TOKEN>>", token)), "a name cannot ask for it")
}

func FuzzRenderUserData(f *testing.F) {
	f.Add("join <<MACHINE_NAME>> <<BOOTSTRAP_TOKEN>>", "m-1")
	f.Add("%3C%3CMACHINE_NAME%3E%3E%3C%3CBOOTSTRAP_TOKEN%3E%3E", "a b")
	f.Add("<<MACHINE_<<MACHINE_NAME>>NAME>>", "")
	f.Add("<<<MACHINE_NAME>>>", "<<MACHINE_NAME>>")
	f.Add("<<BOOTSTRAP_<<MACHINE_NAME>>>>", "TOKEN")
	f.Add("<<BOOTSTRAP_<<BOOTSTRAP_TOKEN>>TOKEN>>", "<<BOOTSTRAP_TOKEN>>")
	f.Add("\xff\x00", "\xff")
	token := tokenOf(newToken(1, now))
	f.Fuzz(func(t *testing.T, text, name string) {
		data := []byte(text)
		out := machine.RenderUserData(data, name, machine.BootstrapToken{})
		if n := strings.Count(text, machine.MachineNamePlaceholder); n > 0 {
			require.Len(t, out, len(text)+n*(len(name)-len(machine.MachineNamePlaceholder)))
		} else if !strings.Contains(text, "%3C%3CMACHINE_NAME%3E%3E") {
			require.True(t, bytes.Equal(out, []byte(text)))
		}

		joined := machine.RenderUserData(data, name, token)
		require.Equal(t, text, string(data))
		if strings.Contains(text, token.ID()) || strings.Contains(name, token.ID()) {
			return
		}
		plain, encoded := strings.Count(text, machine.BootstrapTokenPlaceholder), strings.Count(text, "%3C%3CBOOTSTRAP_TOKEN%3E%3E")
		if plain > 0 {
			encoded = 0
		}
		require.Equal(t, plain+encoded, bytes.Count(joined, []byte(token.Reveal())), "the token stands where it should, and nowhere else")
		require.Equal(t, plain+encoded > 0, machine.NeedsToken(map[string][]byte{machine.UserDataKey: data}))
		if plain+encoded == 0 {
			require.Equal(t, out, joined)
		}
	})
}
