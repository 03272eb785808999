"""Signing in and out; the rate limit says what it does."""

from django.test import Client

from tests.cast import PASSWORD, Cast


def sign_in(client: Client, password: str, username: str = "alice", **more: str):
    return client.post("/sign-in/", {"login": username, "password": password, **more})


def test_every_page_asks_to_sign_in_first_and_then_leads_there(cast: Cast, client: Client) -> None:
    asked = client.get("/p/study/label/toxicity/")
    assert asked["Location"] == "/sign-in/?next=/p/study/label/toxicity/"
    assert 'name="next" value="/p/study/label/toxicity/"' in client.get(asked["Location"]).content.decode()
    assert sign_in(client, PASSWORD, next="/p/study/label/toxicity/")["Location"] == "/p/study/label/toxicity/"


def test_after_five_wrong_tries_sign_in_rests_and_says_so_before(cast: Cast, client: Client) -> None:
    said = [sign_in(client, "wrong").content.decode() for _ in range(6)]
    assert "Four tries are left, then a pause of 5 minutes." in said[0]
    assert "One try is left" in said[3]
    assert "Sign-in now rests for 5 minutes." in said[4]
    assert "Too many wrong tries." in said[5]
    assert "Too many wrong tries." in sign_in(client, PASSWORD).content.decode()
    # Another person's sign-in does not rest.
    assert sign_in(client, PASSWORD, "dave").status_code == 302


def test_the_message_does_not_tell_whether_the_name_exists(cast: Cast, client: Client) -> None:
    assert "That pair does not match." in sign_in(client, "wrong", "nobody-of-that-name").content.decode()


def test_nobody_can_make_an_account(cast: Cast, client: Client) -> None:
    for path in ("/signup/", "/accounts/signup/", "/sign-up/"):
        assert client.get(path).status_code in (302, 404)


def test_a_next_outside_the_app_is_ignored(cast: Cast, client: Client) -> None:
    assert sign_in(client, PASSWORD, next="https://evil.example/")["Location"] == "/"


def test_signing_out_asks_first_and_then_closes_everything(cast: Cast, client: Client) -> None:
    client.force_login(cast.alice.user)
    assert client.get("/sign-out/").status_code == 200
    client.post("/sign-out/")
    assert client.get("/").status_code == 302


def test_signing_in_leads_to_the_page_without_a_word_about_it(cast: Cast, client: Client) -> None:
    response = client.post("/sign-in/", {"login": "alice", "password": PASSWORD}, follow=True)
    assert response.status_code == 200
    assert "Successfully" not in response.content.decode()
