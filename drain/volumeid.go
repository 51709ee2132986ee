// SPDX-License-Identifier: Apache-2.0

package drain

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
)

// volumeID is what two names of the same volume have in common. Two of them are the
// same volume if they are equal, and not if one only looks like the other.
type volumeID struct {
	// kind is the CSI driver or the in-tree plugin. It is empty if only the name of the
	// PersistentVolume is known, and attachmentKind if not even that is.
	kind string
	name string
}

const (
	csiPrefix      = "kubernetes.io/csi/"
	attachmentKind = "volumeattachment/"

	pluginAWS     = "kubernetes.io/aws-ebs"
	pluginGCE     = "kubernetes.io/gce-pd"
	pluginAzure   = "kubernetes.io/azure-disk"
	pluginCinder  = "kubernetes.io/cinder"
	pluginVsphere = "kubernetes.io/vsphere-volume"
	pluginFC      = "kubernetes.io/fc"
	pluginISCSI   = "kubernetes.io/iscsi"
	pluginRBD     = "kubernetes.io/rbd"

	driverAWS     = "ebs.csi.aws.com"
	driverGCE     = "pd.csi.storage.gke.io"
	driverAzure   = "disk.csi.azure.com"
	driverCinder  = "cinder.csi.openstack.org"
	driverVsphere = "csi.vsphere.vmware.com"
)

// csiID is the volume of a CSI driver. A disk that was made for an in-tree plugin is
// the same for the driver that has taken it over, which writes it otherwise.
func csiID(driver, handle string) volumeID {
	if driver == driverAWS || driver == driverGCE && strings.HasPrefix(handle, "projects/UNSPECIFIED/") {
		handle = handle[strings.LastIndexByte(handle, '/')+1:]
	}
	return volumeID{kind: driver, name: handle}
}

// inTreeID is the volume of an in-tree plugin. Most of them are carried out by a CSI
// driver today.
func inTreeID(plugin, name string) volumeID {
	switch plugin {
	case pluginAWS:
		return csiID(driverAWS, name)
	case pluginGCE:
		return csiID(driverGCE, name)
	case pluginAzure:
		return csiID(driverAzure, name)
	case pluginCinder:
		return csiID(driverCinder, name)
	case pluginVsphere:
		return csiID(driverVsphere, name)
	default:
		return volumeID{kind: plugin, name: name}
	}
}

// uniqueID reads the unique name by which the status of a Node calls a volume:
// kubernetes.io/csi/DRIVER^HANDLE, or the name of an in-tree plugin and what that
// calls the volume.
func uniqueID(name string) (id volumeID, csi bool) {
	if rest, ok := strings.CutPrefix(name, csiPrefix); ok {
		if driver, handle, ok := strings.Cut(rest, "^"); ok && driver != "" {
			return csiID(driver, handle), true
		}
	}
	if domain, rest, ok := strings.Cut(name, "/"); ok {
		if plugin, _, ok := strings.Cut(rest, "/"); ok {
			at := len(domain) + 1 + len(plugin)
			return inTreeID(name[:at], name[at+1:]), false
		}
	}
	return volumeID{kind: name}, false
}

// persistentID is the volume of a PersistentVolume.
func persistentID(pv *corev1.PersistentVolume) (volumeID, bool) {
	s := &pv.Spec.PersistentVolumeSource
	if s.CSI != nil {
		return csiID(s.CSI.Driver, s.CSI.VolumeHandle), s.CSI.Driver != "" && s.CSI.VolumeHandle != ""
	}
	same := corev1.VolumeSource{
		AWSElasticBlockStore: s.AWSElasticBlockStore, GCEPersistentDisk: s.GCEPersistentDisk,
		AzureDisk: s.AzureDisk, VsphereVolume: s.VsphereVolume, FC: s.FC,
	}
	switch {
	case s.Cinder != nil:
		same.Cinder = &corev1.CinderVolumeSource{VolumeID: s.Cinder.VolumeID}
	case s.ISCSI != nil:
		same.ISCSI = &corev1.ISCSIVolumeSource{TargetPortal: s.ISCSI.TargetPortal, IQN: s.ISCSI.IQN, Lun: s.ISCSI.Lun}
	case s.RBD != nil:
		same.RBD = &corev1.RBDVolumeSource{RBDPool: s.RBD.RBDPool, RBDImage: s.RBD.RBDImage}
	}
	return inlineID(&same)
}

// inlineID is the volume that a pod names itself, for the in-tree plugins that attach
// theirs. Inline CSI volumes are not attached.
func inlineID(s *corev1.VolumeSource) (volumeID, bool) {
	switch {
	case s.AWSElasticBlockStore != nil:
		return inTreeID(pluginAWS, s.AWSElasticBlockStore.VolumeID), true
	case s.GCEPersistentDisk != nil:
		return inTreeID(pluginGCE, s.GCEPersistentDisk.PDName), true
	case s.AzureDisk != nil:
		return inTreeID(pluginAzure, s.AzureDisk.DataDiskURI), true
	case s.Cinder != nil:
		return inTreeID(pluginCinder, s.Cinder.VolumeID), true
	case s.VsphereVolume != nil:
		return inTreeID(pluginVsphere, s.VsphereVolume.VolumePath), true
	case s.ISCSI != nil:
		return volumeID{pluginISCSI, fmt.Sprintf("%s:%s:%d", s.ISCSI.TargetPortal, s.ISCSI.IQN, s.ISCSI.Lun)}, true
	case s.FC != nil && len(s.FC.TargetWWNs) > 0 && s.FC.Lun != nil:
		return volumeID{pluginFC, fmt.Sprintf("%v:%d", s.FC.TargetWWNs, *s.FC.Lun)}, true
	case s.FC != nil:
		return volumeID{pluginFC, fmt.Sprint(s.FC.WWIDs)}, true
	case s.RBD != nil:
		return volumeID{pluginRBD, s.RBD.RBDPool + ":" + s.RBD.RBDImage}, true
	default:
		return volumeID{}, false
	}
}

// attachmentID is the volume of an attachment, and its name: that of the
// PersistentVolume, or the unique name of a volume that a pod named itself. An
// attachment that says neither is known by its own name alone.
func attachmentID(va *storagev1.VolumeAttachment, persistent func(string) volumeID) (id volumeID, name string) {
	source := &va.Spec.Source
	switch {
	case source.PersistentVolumeName != nil && *source.PersistentVolumeName != "":
		return persistent(*source.PersistentVolumeName), *source.PersistentVolumeName
	case source.InlineVolumeSpec != nil && source.InlineVolumeSpec.CSI != nil && source.InlineVolumeSpec.CSI.Driver != "":
		name = csiPrefix + source.InlineVolumeSpec.CSI.Driver + "^" + source.InlineVolumeSpec.CSI.VolumeHandle
		id, _ = uniqueID(name)
		return id, name
	default:
		return volumeID{kind: attachmentKind, name: va.Name}, attachmentKind + va.Name
	}
}
