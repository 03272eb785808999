from django.urls import URLPattern, URLResolver, path

from annotation.views import account, disputes, home, known, labelling, media, people, questions, rounds, tokens, wellbeing

urlpatterns: list[URLPattern | URLResolver] = [
    # one's own pages
    path("", home.home, name="home"),
    path("hidden/", home.hidden, name="hidden"),
    path("support/", home.support, name="support"),
    path("account/", account.account, name="account"),
    path("account/keys/", account.single_keys, name="single_keys"),
    path("account/greyscale/", wellbeing.greyscale, name="greyscale"),
    path("exposure/", wellbeing.exposure, name="exposure"),
    # labelling
    path("p/<slug:project>/label/<slug:question>/", labelling.label, name="label"),
    path("p/<slug:project>/label/<slug:question>/next/", labelling.next_work, name="next_work"),
    path("p/<slug:project>/vote/", labelling.vote, name="vote"),
    path("p/<slug:project>/votes/<int:vote>/", labelling.own_vote, name="own_vote"),
    path("p/<slug:project>/abstain/", labelling.abstain, name="abstain"),
    path("p/<slug:project>/flag/", labelling.flag, name="flag"),
    path("p/<slug:project>/release/", labelling.release, name="release"),
    # care
    path("p/<slug:project>/consent/", wellbeing.consent, name="consent"),
    path("p/<slug:project>/care/", wellbeing.care, name="care"),
    # pictures
    path("p/<slug:project>/items/<int:picture>/picture", media.picture, name="picture"),
    path("p/<slug:project>/items/<int:picture>/thumbnail", media.thumbnail, name="thumbnail"),
    # disputes
    path("p/<slug:project>/disputes/", disputes.listing, name="disputes"),
    path("p/<slug:project>/disputes/<slug:question>/", disputes.dispute, name="dispute"),
    # afterwards: a task's history, new rounds, flags, guideline gaps
    path("p/<slug:project>/tasks/<int:task>/", rounds.task, name="task"),
    path("p/<slug:project>/tasks/<int:task>/retire/", rounds.retire, name="task_retire"),
    path("p/<slug:project>/tasks/<int:task>/reopen/", rounds.reopen, name="task_reopen"),
    path("p/<slug:project>/tasks/<int:task>/votes/<int:vote>/void/", rounds.void_vote, name="task_void"),
    path("p/<slug:project>/flags/", rounds.listing, name="flags"),
    path("p/<slug:project>/flags/<int:flag>/handled/", rounds.handled, name="flag_handled"),
    path("p/<slug:project>/items/<int:item>/quarantine/lift/", rounds.lift, name="lift_quarantine"),
    path("p/<slug:project>/questions/<slug:question>/gaps/", rounds.guideline_gaps, name="gaps"),
    path("p/<slug:project>/questions/<slug:question>/reopen/", rounds.affected, name="affected"),
    # questions
    path("p/<slug:project>/questions/", questions.listing, name="questions"),
    path("p/<slug:project>/questions/new/", questions.new, name="question_new"),
    path("p/<slug:project>/questions/<slug:question>/", questions.question, name="question"),
    path("p/<slug:project>/questions/<slug:question>/change/", questions.change, name="question_change"),
    path("p/<slug:project>/questions/<slug:question>/guideline/", questions.guideline, name="question_guideline"),
    path("p/<slug:project>/questions/<slug:question>/active/", questions.active, name="question_active"),
    path("p/<slug:project>/questions/<slug:question>/known/", known.listing, name="known"),
    path("p/<slug:project>/questions/<slug:question>/known/<int:known_answer>/", known.one, name="known_one"),
    path("p/<slug:project>/questions/<slug:question>/pauses/<int:number>/lift/", known.lift_pause, name="pause_lift"),
    # people
    path("p/<slug:project>/people/", people.listing, name="people"),
    path("p/<slug:project>/people/<int:number>/", people.person, name="person"),
    path("p/<slug:project>/people/<int:number>/void/", people.void, name="person_void"),
    path("p/<slug:project>/audit/", people.trail, name="audit"),
    path("projects/new/", people.new_project, name="project_new"),
    path("account/tokens/", tokens.tokens, name="tokens"),
    path("account/tokens/<slug:key>/revoke/", tokens.revoke, name="token_revoke"),
]
