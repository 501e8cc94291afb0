"""Where the store of a test is."""

import pytest
from support.stored import url_of


@pytest.fixture
def url(tmp_path):
    return url_of(tmp_path)
