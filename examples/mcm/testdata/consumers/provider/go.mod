module example.com/machine-controller-manager-provider-acme

go 1.26.0

require (
	github.com/gardener/machine-controller-manager v0.62.0
	github.com/machinist-dev/machinist/examples v0.1.0
	github.com/onsi/ginkgo/v2 v2.27.2
	github.com/onsi/gomega v1.38.2
	github.com/prometheus/client_golang v1.22.0
	github.com/spf13/pflag v1.0.10
	github.com/stretchr/testify v1.12.1
	k8s.io/api v0.37.2
	k8s.io/apimachinery v0.37.2
	k8s.io/component-base v0.37.2
)

replace github.com/gardener/machine-controller-manager => github.com/machinist-dev/machinist/examples/mcm v0.1.0
