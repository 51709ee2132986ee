module example.com/gardener-extension-provider-acme

go 1.26.0

require (
	github.com/gardener/machine-controller-manager v0.62.0
	github.com/stretchr/testify v1.12.1
	k8s.io/api v0.37.2
	k8s.io/apimachinery v0.37.2
	k8s.io/client-go v0.37.2
)

replace github.com/gardener/machine-controller-manager => github.com/machinist-dev/machinist/examples/mcm v0.1.0
