"""Feature gates: the names that kube-scheduler 1.36 knows, their defaults, and the ``--feature-gates`` flag.

All gates of Kubernetes are known, not only the scheduler's: clusters hand one list to all their components. What a gate
does is the business of those who ask `FeatureGates.enabled`; `HONOURED` names the gates that somebody asks for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from scheduler.config.errors import UsageError, go_value

__all__ = ["DEFAULT_GATES", "HONOURED", "FeatureGates", "parse_bool", "parse_feature_gates"]


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ON = _names(
    """
    APIResponseCompression APIServerIdentity AllowParsingUserUIDFromCertAuth AtomicFIFO
    AuthorizePodWebsocketUpgradeCreatePermission CPUManagerPolicyBetaOptions CRDObservedGenerationTracking
    ClearingNominatedNodeNameAfterBinding ClientsAllowCARotation ClientsAllowTLSCacheGC ComponentFlagz
    ComponentStatusz ConstrainedImpersonation ContainerCheckpoint ContainerRestartRules ContextualLogging
    DRAConsumableCapacity DRADeviceBindingConditions DRADeviceTaints DRAExtendedResource DRAPartitionableDevices
    DRAPrioritizedList DRAResourceClaimDeviceStatus DRAResourceClaimGranularStatusAuthorization
    DRASchedulerFilterTimeout DeclarativeValidationBeta DeclarativeValidationTakeover
    DeploymentReplicaSetTerminatingReplicas DetectCacheInconsistency DisableCPUQuotaWithExclusiveCPUs EnvFiles
    ExtendWebSocketsToKubelet GracefulNodeShutdown GracefulNodeShutdownBasedOnPodPriority HPAConfigurableTolerance
    HostnameOverride InOrderInformersBatchProcess InPlacePodLevelResourcesVerticalScaling
    InPlacePodVerticalScalingInitContainers InformerResourceVersion KubeletCrashLoopBackOffMax
    KubeletEnsureSecretPulledImages KubeletPodResourcesListUseActivePods KubeletSeparateDiskGC
    KubeletServiceAccountTokenForCredentialProviders ListFromCacheSnapshot LoggingBetaOptions
    MatchLabelKeysInPodTopologySpread MatchLabelKeysInPodTopologySpreadSelectorMerge
    MutablePodResourcesForSuspendedJobs MutableSchedulingDirectivesForSuspendedJobs MutatingAdmissionPolicy
    NodeDeclaredFeatures NominatedNodeNameForExpectation OpenAPIEnums OpportunisticBatching PLEGOnDemandRelist
    PodDeletionCost PodLevelResources PodReadyToStartContainersCondition PodTopologyLabelsAdmission
    PortForwardWebsockets PreventStaticPodAPIReferences RelaxedServiceNameValidation ReloadKubeletClientCAFile
    ReloadKubeletServerCertificateFile RemoteRequestHeaderUID ResourceHealthStatus ResourceHealthStatusMessage
    RestartAllContainersOnContainerExits RotateKubeletServerCertificate SchedulerAsyncPreemption
    SchedulerPopFromBackoffQ ServiceAccountNodeAudienceRestriction SizeBasedListCostEstimate
    StaleControllerConsistencyDaemonSet StaleControllerConsistencyJob StaleControllerConsistencyReplicaSet
    StaleControllerConsistencyStatefulSet StatefulSetSemanticRevisionComparison StorageNamespaceIndex
    StorageVersionHash StrictIPCIDRValidation StructuredAuthenticationConfigurationEgressSelector
    StructuredAuthenticationConfigurationJWKSMetrics TokenRequestServiceAccountUIDValidation
    TopologyManagerPolicyBetaOptions TranslateStreamCloseWebsocketRequests UnauthenticatedHTTP2DOSMitigation
    UnknownVersionInteroperabilityProxy UnlockWhileProcessingFIFO WatchCacheInitializationPostStartHook WatchList
    WatchListClient WindowsGracefulNodeShutdown
    """
)
_OFF = _names(
    """
    APIServingWithRoutine AllAlpha AllBeta AllowDNSOnlyNodeCSR AllowInsecureKubeletCertificateSigningRequests
    AllowServiceExternalIPs AllowUnsafeMalformedObjectDeletion CBORServingAndStorage CPUManagerPolicyAlphaOptions
    CRIListStreaming CSIVolumeHealth ChangeContainerStatusOnKubeletRestart ClientsAllowCBOR ClientsPreferCBOR
    CloudControllerManagerWatchBasedRoutesReconciliation CloudControllerManagerWebhook ClusterTrustBundle
    ClusterTrustBundleProjection ConcurrentWatchObjectDecode ContainerStopSignals
    ControllerManagerReleaseLeaderElectionLockOnExit CoordinatedLeaderElection CrossNamespaceVolumeDataSource
    CustomCPUCFSQuotaPeriod DRADeviceTaintRules DRAListTypeAttributes DRANodeAllocatableResources
    DRAResourcePoolStatus DRAWorkloadResourceClaims EventedPLEG GangScheduling GenericWorkload HPAScaleToZero
    ImageVolumeWithDigest InPlacePodVerticalScalingExclusiveCPUs InPlacePodVerticalScalingExclusiveMemory KMSv1
    KubeletInUserNamespace KubeletRegistrationGetOnExistsOnly LocalStorageCapacityIsolationFSQuotaMonitoring
    LoggingAlphaOptions ManifestBasedAdmissionControlConfig MaxUnavailableStatefulSet MemoryQoS
    MutablePVNodeAffinity NativeHistograms PersistentVolumeClaimUnusedSinceTime PodAndContainerStatsFromCRI
    PodCertificateRequest PodLevelResourceManagers PodLogsQuerySplitStreams PodsAPI QOSReserved
    ReduceDefaultCrashLoopBackOffDecay RuntimeClassInImageCriApi SELinuxMount SchedulerAsyncAPICalls
    ServiceCIDRStatusFieldWiping ShardedListAndWatch StorageCapacityScoring StorageVersionAPI StorageVersionMigrator
    TaintTolerationComparisonOperators TopologyAwareWorkloadScheduling TopologyManagerPolicyAlphaOptions
    UserNamespacesHostNetworkSupport VolumeLimitScaling WindowsCPUAndMemoryAffinity WindowsHostNetwork
    WorkloadAwarePreemption WorkloadWithJob
    """
)
_LOCKED_ON = _names(
    """
    APIServerTracing AggregatedDiscoveryRemoveBetaType AnonymousAuthConfigurableEndpoints AnyVolumeDataSource
    AuthorizeNodeWithSelectors AuthorizeWithSelectors BtreeWatchCache CPUManagerPolicyOptions
    CRDValidationRatcheting CSIServiceAccountTokenSecrets ConsistentListFromCache CustomResourceFieldSelectors
    DRAAdminAccess DeclarativeValidation DisableAllocatorDualWrite DisableNodeKubeProxyVersion
    DynamicResourceAllocation ExecProbeTimeout ExternalServiceAccountTokenSigner ImageMaximumGCAge ImageVolume
    InOrderInformers InPlacePodVerticalScaling JobBackoffLimitPerIndex JobManagedBy JobPodReplacementPolicy
    JobSuccessPolicy KubeletCgroupDriverFromCRI KubeletFineGrainedAuthz KubeletPSI
    KubeletPodResourcesDynamicResources KubeletPodResourcesGet KubeletTracing LogarithmicScaleDown
    MatchLabelKeysInPodAffinity MultiCIDRServiceAllocator MutableCSINodeAllocatableCount NFTablesProxyMode
    NodeInclusionPolicyInPodTopologySpread NodeLogQuery NodeSwap OrderedNamespaceDeletion PodLifecycleSleepAction
    PodLifecycleSleepActionAllowZero PodObservedGenerationTracking PodSchedulingReadiness
    PreferSameTrafficDistribution ProcMountType RecoverVolumeExpansionFailure RecursiveReadOnlyMounts
    RelaxedDNSSearchValidation RelaxedEnvironmentVariableValidation ResilientWatchCacheInitialization
    RetryGenerateName SELinuxChangePolicy SELinuxMountReadWriteOncePod SchedulerQueueingHints
    SeparateTaintEvictionController ServiceAccountTokenJTI ServiceAccountTokenNodeBinding
    ServiceAccountTokenNodeBindingValidation ServiceAccountTokenPodNodeInfo SidecarContainers
    StreamingCollectionEncodingToJSON StreamingCollectionEncodingToProtobuf StructuredAuthenticationConfiguration
    SupplementalGroupsPolicy TopologyManagerPolicyOptions UserNamespacesSupport VolumeAttributesClass WinDSR
    WinOverlay
    """
)
_LOCKED_OFF = _names(
    """
    AllowOverwriteTerminationGracePeriodSeconds GitRepoVolumeDriver SeparateCacheWatchRPC
    """
)

HONOURED: Mapping[str, str] = {
    "DRADeviceBindingConditions": "BETA",
    "DRAResourceClaimDeviceStatus": "BETA",
    "DRASchedulerFilterTimeout": "BETA",
    "NodeDeclaredFeatures": "BETA",
    "SchedulerAsyncPreemption": "BETA",
    "StorageCapacityScoring": "ALPHA",
}
"""Gates whose setting changes something in Podium, with their stages; any other is accepted and said once."""

_COMPONENT = "kube"


@dataclass(frozen=True, slots=True)
class FeatureGates:
    """The gates' settings: the defaults, changed by what was set on the command line."""

    changed: Mapping[str, bool] = field(default_factory=dict)

    def enabled(self, name: str) -> bool:
        """Say whether a gate is on.

        Raises:
            KeyError: no such gate.
        """
        if name in self.changed:
            return self.changed[name]
        return _default(name)

    def honoured(self) -> Iterable[tuple[str, str, bool]]:
        """Return name, stage and setting of the gates that change something here."""
        return ((name, stage, self.enabled(name)) for name, stage in HONOURED.items())

    def without_effect(self) -> Iterable[str]:
        """Return the gates that were set to something other than their default and that nobody asks for."""
        return (name for name, on in self.changed.items() if name not in HONOURED and on is not _default(name))


def _default(name: str) -> bool:
    if name in _ON or name in _LOCKED_ON:
        return True
    if name in _OFF or name in _LOCKED_OFF:
        return False
    raise KeyError(name)


DEFAULT_GATES = FeatureGates()


def parse_feature_gates(texts: Iterable[str]) -> FeatureGates:
    """Read the values of ``--feature-gates``: each a list ``A=true,kube:B=false``; later ones win.

    Raises:
        UsageError: an unknown gate, a value that is no boolean, or a gate that can no longer be changed.
    """
    changed: dict[str, bool] = {}
    for text in texts:
        for entry in filter(None, (part.strip() for part in text.split(","))):
            name, value = _parse_entry(entry)
            changed[name] = value
    return FeatureGates(changed)


def _parse_entry(entry: str) -> tuple[str, bool]:
    left, equals, right = entry.partition("=")
    component, colon, name = left.strip().rpartition(":")
    if colon and component != _COMPONENT:
        raise UsageError(f"component not registered: {component}")
    if not equals:
        raise UsageError(f"missing bool value for {name}")
    value = parse_bool(right.strip())
    if value is None:
        reason = f"strconv.ParseBool: parsing {go_value(right.strip())}: invalid syntax"
        raise UsageError(f"invalid value of {name}={right.strip()}, err: {reason}")
    try:
        default = _default(name)
    except KeyError:
        raise UsageError(f"unrecognized feature gate: {name}") from None
    if value is not default and name in _LOCKED_ON | _LOCKED_OFF:
        states = f"{str(value).lower()}, feature is locked to {str(default).lower()}"
        raise UsageError(f"cannot set feature gate {name} to {states}")
    return name, value


def parse_bool(text: str) -> bool | None:
    """Read a boolean as Go's ``strconv.ParseBool`` does; None if it is none."""
    if text in {"1", "t", "T", "TRUE", "true", "True"}:
        return True
    return False if text in {"0", "f", "F", "FALSE", "false", "False"} else None
