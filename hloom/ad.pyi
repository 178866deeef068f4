from .autodiff.gradient_refs import (
    DidntWant as DidntWant, DontWant as DontWant, GradRef as GradRef, GradValue as GradValue,
)
