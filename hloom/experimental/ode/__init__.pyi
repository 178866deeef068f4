from .dopri import odeint as odeint
