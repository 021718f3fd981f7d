"""No request makes the server fail, and every reply is as the OpenAPI document says."""

import pytest
from tests.acceptance.server.conftest import Served
from tests.acceptance.server.fuzzing import fuzz


def test_a_sample_of_requests_gets_replies_as_documented(served: Served) -> None:
    statuses = fuzz(served, examples=1)
    assert {"200", "404", "422"} <= set(statuses)


@pytest.mark.api
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("first", range(0, 1000, 250))
def test_many_requests_get_replies_as_documented(served: Served, first: int) -> None:
    fuzz(served, examples=120, first=first)
