import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('scoring', '0001_initial'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RemoveConstraint(model_name='score', name='score_is_a_number'),
        migrations.AddConstraint(
            model_name='score',
            constraint=models.CheckConstraint(condition=models.Q(('value__gt', float('-inf')), ('value__lt', float('inf'))), name='score_is_a_number'),
        ),
        migrations.AddField(
            model_name='scoringrun',
            name='already_scored',
            field=models.PositiveIntegerField(default=0, help_text="Items left out because they had this version's scores."),
        ),
        migrations.AlterField(
            model_name='scoringrun',
            name='paused_by',
            field=models.ForeignKey(help_text='Who paused or cancelled it.', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AlterField(
            model_name='scoringrunstateerrorpausedbyevent',
            name='paused_by',
            field=models.ForeignKey(db_constraint=False, help_text='Who paused or cancelled it.', null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', related_query_name='+', to=settings.AUTH_USER_MODEL),
        ),
    ]
