"""Which command a misspelt name may mean."""

import click


class SpellingGroup(click.Group):
    """A click group whose error about an unknown command names those that are spelled nearly so."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from difflib import get_close_matches  # only needed after a spelling mistake

            close = get_close_matches(args[0], self.list_commands(ctx), n=2)
            if not close:
                raise
            raise click.UsageError(f"{error.message} Did you mean {' or '.join(close)}?", ctx) from None
