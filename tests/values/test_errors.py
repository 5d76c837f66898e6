"""The exceptions: one tree, and what each carries."""

from __future__ import annotations

import copy
import inspect
import pickle

import pytest

from zrecover import errors
from zrecover.errors import RemoteError, WorkerLost, ZRecoverError

KINDS = [getattr(errors, name) for name in errors.__all__]


@pytest.mark.parametrize("kind", KINDS)
def test_every_error_is_of_one_tree_and_explained(kind: type[Exception]) -> None:
    assert issubclass(kind, ZRecoverError)
    assert inspect.getdoc(kind)
    assert kind.__name__ in (errors.__doc__ or "")


def test_every_error_is_listed() -> None:
    defined = {
        name
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, Exception)
    }
    assert defined == set(errors.__all__)


@pytest.mark.parametrize(
    ("kind", "base"),
    [
        (errors.ConfigError, ValueError),
        (errors.InvalidReplica, errors.ConfigError),
        (errors.InsecureEndpoint, errors.ConfigError),
        (errors.AddressInUse, errors.BindFailed),
        (errors.ForkedError, errors.LifecycleError),
        (errors.BadMessage, ValueError),
        (errors.DeadlineExceeded, TimeoutError),
        (errors.PayloadError, ValueError),
        (errors.ModelNotFound, errors.CallError),
        (errors.NoReplica, errors.CallError),
        (errors.ReplicaNotFound, errors.NoReplica),
    ],
)
def test_who_catches_what(kind: type[Exception], base: type[Exception]) -> None:
    with pytest.raises(base, match="why"):
        raise kind("why")


def test_L19_a_lost_worker_says_whether_the_handler_may_have_run() -> None:
    assert WorkerLost("gone", may_have_run=True).may_have_run
    assert str(WorkerLost("gone", may_have_run=False)) == "gone"


def test_a_remote_error_carries_type_message_and_traceback() -> None:
    error = RemoteError("KeyError", "'prompt'", "Traceback …")
    assert (error.type, error.message, error.traceback) == ("KeyError", "'prompt'", "Traceback …")
    assert str(error) == "KeyError: 'prompt'"
    assert str(RemoteError("KeyError", "")) == "KeyError"


@pytest.mark.parametrize(
    "error",
    [
        WorkerLost("gone", may_have_run=True),
        RemoteError("KeyError", "'prompt'", "Traceback …"),
        RemoteError("KeyError", ""),
        *(kind("why") for kind in KINDS if kind not in (WorkerLost, RemoteError)),
    ],
    ids=lambda error: type(error).__name__,
)
def test_every_error_comes_through_a_process_pool(error: Exception) -> None:
    error.add_note("seen in a child")
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert vars(again) == vars(error)
