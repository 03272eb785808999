"""People and tasks that were there before sittings and sensitive tasks were."""

from django.db import migrations

SENSITIVE = """
    CASE WHEN lower(item.metadata ->> 'sensitive') IN ('true', 'yes', '1') THEN true
         WHEN lower(item.metadata ->> 'sensitive') IN ('false', 'no', '0') THEN false
         ELSE question.sensitive END
"""


class Migration(migrations.Migration):
    dependencies = [("annotation", "0004_checks_numbered")]
    operations = [
        migrations.RunSQL(
            """
            INSERT INTO annotation_sitting (user_id, since, last)
            SELECT DISTINCT user_id, now(), now() FROM annotation_membership WHERE user_id IS NOT NULL ON CONFLICT DO NOTHING
            """,
            migrations.RunSQL.noop,
        ),
        migrations.RunSQL(
            f"""
            UPDATE annotation_task AS task SET sensitive = true
            FROM annotation_item AS item, annotation_question AS question
            WHERE item.id = task.item_id AND question.id = task.question_id AND {SENSITIVE}
            """,  # noqa: S608 - our own words
            migrations.RunSQL.noop,
        ),
    ]
