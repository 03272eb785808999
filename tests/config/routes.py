"""Who may use which address: one line for each address and method there is. test_routes holds the app to this table."""

ANYONE = "anyone"
SIGNED_IN = "signed in"
MEMBER = "member"
VOTER = "voter"
ADJUDICATOR = "adjudicator"
RESEARCHER = "researcher"
STAFF = "staff"
NOBODY = "nobody"  # answers 404 to everyone

P = "p/<slug:project>/"
API = "api/v1/"
AP = f"{API}projects/<slug:project>/"

ROUTES: list[tuple[str, str, str]] = [
    # one's own pages
    (ANYONE, "GET POST", "sign-in/"),
    (ANYONE, "GET POST", "sign-out/"),
    (ANYONE, "GET", "healthz"),
    (ANYONE, "GET", "support/"),
    (SIGNED_IN, "GET", ""),
    (SIGNED_IN, "GET", "hidden/"),
    (SIGNED_IN, "GET POST", "account/"),
    (SIGNED_IN, "POST", "account/keys/"),
    (SIGNED_IN, "GET POST", "account/tokens/"),
    (SIGNED_IN, "POST", "account/tokens/<slug:key>/revoke/"),
    (STAFF, "GET POST", "projects/new/"),
    # labelling
    (VOTER, "GET POST", f"{P}label/<slug:question>/"),
    (VOTER, "GET", f"{P}label/<slug:question>/next/"),
    (VOTER, "POST", f"{P}vote/"),
    (VOTER, "GET POST", f"{P}votes/<int:vote>/"),
    (VOTER, "POST", f"{P}abstain/"),
    (VOTER, "POST", f"{P}flag/"),
    (VOTER, "POST", f"{P}release/"),
    # disputes
    (ADJUDICATOR, "GET", f"{P}disputes/"),
    (ADJUDICATOR, "GET POST", f"{P}disputes/<slug:question>/"),
    # questions
    (RESEARCHER, "GET", f"{P}questions/"),
    (RESEARCHER, "GET POST", f"{P}questions/new/"),
    (RESEARCHER, "GET", f"{P}questions/<slug:question>/"),
    (RESEARCHER, "GET POST", f"{P}questions/<slug:question>/change/"),
    (RESEARCHER, "GET POST", f"{P}questions/<slug:question>/guideline/"),
    (RESEARCHER, "POST", f"{P}questions/<slug:question>/active/"),
    # people
    (RESEARCHER, "GET POST", f"{P}people/"),
    (RESEARCHER, "GET POST", f"{P}people/<int:number>/"),
    (RESEARCHER, "GET", f"{P}audit/"),
    # machine
    (RESEARCHER, "GET", f"{P}scorers/"),
    (RESEARCHER, "GET POST", f"{P}scorers/new/"),
    (RESEARCHER, "GET", f"{P}runs/"),
    (RESEARCHER, "GET", f"{P}runs/<int:run>/"),
    (RESEARCHER, "POST", f"{P}runs/<int:run>/pause/"),
    (RESEARCHER, "POST", f"{P}runs/<int:run>/resume/"),
    (RESEARCHER, "POST", f"{P}runs/<int:run>/cancel/"),
    # where they meet
    (RESEARCHER, "GET", f"{P}export/"),
    (RESEARCHER, "GET", f"{P}export/items.<slug:form>"),
    # ---------------------------------------------------------------- API
    (ANYONE, "GET", f"{API}schema/"),
    (ANYONE, "GET", f"{API}docs/"),
    (NOBODY, "GET POST PUT PATCH DELETE", f"{API}<path:rest>"),
    (SIGNED_IN, "GET POST", f"{API}tokens/"),
    (SIGNED_IN, "DELETE", f"{API}tokens/<slug:key>/"),
    (SIGNED_IN, "GET", f"{API}projects/"),
    (STAFF, "POST", f"{API}projects/"),
    (MEMBER, "GET", AP),
    (RESEARCHER, "GET POST", f"{AP}members/"),
    (RESEARCHER, "GET PATCH", f"{AP}members/<int:number>/"),
    (RESEARCHER, "GET POST", f"{AP}questions/<slug:question>/tasks/"),
    (VOTER, "POST DELETE", f"{AP}questions/<slug:question>/work/"),
    (VOTER, "GET", f"{AP}questions/<slug:question>/progress/"),
    (VOTER, "POST", f"{AP}votes/"),
    (VOTER, "GET PUT", f"{AP}votes/<int:vote>/"),
    (VOTER, "POST", f"{AP}abstentions/"),
    (MEMBER, "POST", f"{AP}flags/"),
    (VOTER, "GET", f"{AP}answers/"),
    (ADJUDICATOR, "GET POST", f"{AP}questions/<slug:question>/disputes/"),
    (ADJUDICATOR, "POST", f"{AP}rulings/blind/"),
    (ADJUDICATOR, "POST", f"{AP}rulings/"),
    (ADJUDICATOR, "POST", f"{AP}disputes/give-back/"),
    (RESEARCHER, "GET", f"{AP}export/jsonl/"),
    (RESEARCHER, "GET", f"{AP}export/csv/"),
]
