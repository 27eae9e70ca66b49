import dspy
from recall import recall


class Recalling(dspy.Module):
    def forward(self, message, history):
        return dspy.Prediction(answer=recall([*(turn["message"] for turn in history.messages), message]))


agent = Recalling()
