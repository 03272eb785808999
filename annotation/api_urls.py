"""The human side's part of /api/v1/."""

from django.urls import URLPattern, URLResolver, path

from annotation.api import disputes, known, people, pictures, questions, rounds, tasks, tokens, wellbeing, work

PROJECT = "projects/<slug:project>/"
QUESTION = f"{PROJECT}questions/<slug:question>/"

urlpatterns: list[URLPattern | URLResolver] = [
    path("tokens/", tokens.Tokens.as_view(), name="api_tokens"),
    path("tokens/<slug:key>/", tokens.Token.as_view(), name="api_token"),
    path("projects/", people.Projects.as_view(), name="api_projects"),
    path(PROJECT, people.ProjectDetail.as_view(), name="api_project"),
    path(f"{PROJECT}members/", people.Members.as_view(), name="api_members"),
    path(f"{PROJECT}members/<int:number>/", people.Member.as_view(), name="api_member"),
    # what is asked
    path(f"{PROJECT}question-presets/", questions.Presets.as_view(), name="api_question_presets"),
    path(f"{PROJECT}questions/", questions.Questions.as_view(), name="api_questions"),
    path(QUESTION, questions.QuestionDetail.as_view(), name="api_question"),
    path(f"{QUESTION}guidelines/", questions.Guidelines.as_view(), name="api_guidelines"),
    # what is known
    path(f"{QUESTION}known-answers/", known.KnownAnswers.as_view(), name="api_known"),
    path(f"{QUESTION}known-answers/draw/", known.Draw.as_view(), name="api_known_draw"),
    path(f"{QUESTION}known-answers/accuracy/", known.Accuracy.as_view(), name="api_known_accuracy"),
    path(f"{QUESTION}known-answers/<int:known_answer>/", known.KnownAnswer.as_view(), name="api_known_one"),
    path(f"{QUESTION}pauses/<int:number>/lift/", known.LiftPause.as_view(), name="api_pause_lift"),
    path(f"{PROJECT}pauses/", known.Pauses.as_view(), name="api_pauses"),
    path(f"{PROJECT}members/<int:number>/forget/", people.Forget.as_view(), name="api_member_forget"),
    # what is answered
    path(f"{PROJECT}asked/", work.Asked.as_view(), name="api_asked"),
    path(f"{QUESTION}tasks/", tasks.Tasks.as_view(), name="api_tasks"),
    path(f"{QUESTION}work/", work.Work.as_view(), name="api_work"),
    path(f"{QUESTION}progress/", work.Progress.as_view(), name="api_progress"),
    path(f"{PROJECT}items/<int:picture>/picture/", pictures.Picture.as_view(), name="api_picture"),
    path(f"{PROJECT}items/<int:picture>/thumbnail/", pictures.Thumbnail.as_view(), name="api_thumbnail"),
    path(f"{PROJECT}votes/", work.Votes.as_view(), name="api_votes"),
    path(f"{PROJECT}votes/<int:vote>/", work.OwnVote.as_view(), name="api_vote"),
    path(f"{PROJECT}abstentions/", work.Abstentions.as_view(), name="api_abstentions"),
    path(f"{PROJECT}flags/", rounds.Flags.as_view(), name="api_flags"),
    path(f"{PROJECT}answers/", work.Answers.as_view(), name="api_answers"),
    # care
    path(f"{PROJECT}consent/", wellbeing.Consents.as_view(), name="api_consent"),
    path(f"{PROJECT}exposure/", wellbeing.Exposure.as_view(), name="api_exposure"),
    path(f"{PROJECT}care/", wellbeing.ProjectCare.as_view(), name="api_care"),
    path(f"{PROJECT}care/warnings/", wellbeing.Warnings.as_view(), name="api_warnings"),
    path(f"{QUESTION}disputes/", disputes.Disputes.as_view(), name="api_disputes"),
    path(f"{PROJECT}rulings/blind/", disputes.BlindRulings.as_view(), name="api_blind_rulings"),
    path(f"{PROJECT}rulings/", disputes.Rulings.as_view(), name="api_rulings"),
    path(f"{PROJECT}disputes/give-back/", disputes.GiveBack.as_view(), name="api_give_back"),
    # afterwards
    path(f"{PROJECT}tasks/<int:task>/", rounds.OneTask.as_view(), name="api_task"),
    path(f"{QUESTION}tasks/retire/", rounds.Retire.as_view(), name="api_tasks_retire"),
    path(f"{QUESTION}tasks/reopen/", rounds.Reopen.as_view(), name="api_tasks_reopen"),
    path(f"{QUESTION}affected/", rounds.Affected.as_view(), name="api_affected"),
    path(f"{PROJECT}votes/<int:vote>/void/", rounds.VoidVote.as_view(), name="api_vote_void"),
    path(f"{PROJECT}members/<int:number>/void/", rounds.VoidVotes.as_view(), name="api_votes_void"),
    path(f"{PROJECT}flags/<int:flag>/handled/", rounds.Handled.as_view(), name="api_flag_handled"),
    path(f"{PROJECT}items/<int:item>/quarantine/lift/", rounds.LiftQuarantine.as_view(), name="api_quarantine_lift"),
    path(f"{QUESTION}gaps/", rounds.Gaps.as_view(), name="api_gaps"),
    path(f"{PROJECT}consistency/", rounds.OfAdjudicators.as_view(), name="api_consistency"),
]
