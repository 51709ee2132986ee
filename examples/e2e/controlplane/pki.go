// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// lifetime of certificates. No control plane of ours lives longer.
const lifetime = 30 * 24 * time.Hour

// authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

// pair is a certificate with its key, as PEM.
type pair struct {
	cert, key []byte
}

func newAuthority(name string, now time.Time) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template, err := certificate(pkix.Name{CommonName: name}, now)
	if err != nil {
		return nil, err
	}
	template.IsCA = true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &authority{cert: cert, key: key, pem: encodeCertificate(der)}, nil
}

// client makes a certificate for a user of a group.
func (a *authority) client(user, group string, now time.Time) (pair, error) {
	subject := pkix.Name{CommonName: user}
	if group != "" {
		subject.Organization = []string{group}
	}
	template, err := certificate(subject, now)
	if err != nil {
		return pair{}, err
	}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	return a.sign(template)
}

// server makes a certificate for loopback addresses and some names. It serves a
// client as well, because the members of an etcd are both to each other.
func (a *authority) server(name string, also []net.IP, names []string, now time.Time) (pair, error) {
	template, err := certificate(pkix.Name{CommonName: name}, now)
	if err != nil {
		return pair{}, err
	}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	template.IPAddresses = append([]net.IP{net.ParseIP(loopback)}, also...)
	template.DNSNames = append([]string{"localhost"}, names...)
	return a.sign(template)
}

func (a *authority) sign(template *x509.Certificate) (pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return pair{}, err
	}
	encoded, err := encodeKey(key)
	return pair{cert: encodeCertificate(der), key: encoded}, err
}

func certificate(subject pkix.Name, now time.Time) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	return &x509.Certificate{
		SerialNumber:          serial,
		Subject:               subject,
		NotBefore:             now.Add(-time.Hour),
		NotAfter:              now.Add(lifetime),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		BasicConstraintsValid: true,
	}, nil
}

func encodeCertificate(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func encodeKey(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), nil
}

// keys are all certificates of a control plane. etcd trusts an authority of its
// own, so that no user of the API server can go behind its back.
type keys struct {
	ca                       *authority
	etcdCA                   *authority
	etcdServer, etcdClient   pair
	apiServer                pair
	admin, controllerManager pair
	scheduler                pair
	serviceAccounts          []byte
	caKey                    []byte
}

func newKeys(now time.Time) (*keys, error) {
	ca, err1 := newAuthority("machinist test control plane", now)
	etcdCA, err2 := newAuthority("machinist test etcd", now)
	if err := errors.Join(err1, err2); err != nil {
		return nil, fmt.Errorf("make certificates: %w", err)
	}
	k := &keys{ca: ca, etcdCA: etcdCA}
	errs := make([]error, 8)
	k.etcdServer, errs[0] = etcdCA.server("etcd", nil, nil, now)
	k.etcdClient, errs[1] = etcdCA.client("kube-apiserver", "", now)
	k.apiServer, errs[2] = ca.server("kube-apiserver", []net.IP{net.ParseIP(serviceIP)},
		[]string{"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"}, now)
	k.admin, errs[3] = ca.client("admin", "system:masters", now)
	k.controllerManager, errs[4] = ca.client("system:kube-controller-manager", "", now)
	k.scheduler, errs[6] = ca.client("system:kube-scheduler", "", now)
	k.caKey, errs[7] = encodeKey(ca.key)
	var signer *ecdsa.PrivateKey
	if signer, errs[5] = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); errs[5] == nil {
		k.serviceAccounts, errs[5] = encodeKey(signer)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("make certificates: %w", err)
	}
	return k, nil
}

// write puts the files that the components read into a folder.
func (k *keys) write(folder string) error {
	files := map[string][]byte{
		"ca.crt":              k.ca.pem,
		"ca.key":              k.caKey, // signs the certificates of kubelets
		"etcd-ca.crt":         k.etcdCA.pem,
		"etcd.crt":            k.etcdServer.cert,
		"etcd.key":            k.etcdServer.key,
		"etcd-client.crt":     k.etcdClient.cert,
		"etcd-client.key":     k.etcdClient.key,
		"apiserver.crt":       k.apiServer.cert,
		"apiserver.key":       k.apiServer.key,
		"service-account.key": k.serviceAccounts,
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), text, 0o600); err != nil {
			return err
		}
	}
	return nil
}
